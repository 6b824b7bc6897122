/* Runs the library without Rust's std: `cc main.c libno_std_consumer.a`. */
extern int consumer_run(void);

int main(void) { return consumer_run(); }
