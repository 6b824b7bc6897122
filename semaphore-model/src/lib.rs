//! The model checker (to come).
