//! Code for tokio's semaphore, with the import changed. The body is one text, compiled twice: against
//! tokio, so that it is code for tokio, and against this crate. What differs stands in
//! `docs/COMPARE.md`, and is left out here.
#![cfg(not(any(feature = "loom", feature = "shuttle")))]

macro_rules! code_for_tokio {
    ($name:ident, $($import:tt)*) => {
        mod $name {
            use std::sync::Arc;

            use $($import)*::{
                AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit, TryAcquireError,
            };

            #[allow(deprecated, reason = "tokio's name for it")]
            static GLOBAL: Semaphore = Semaphore::const_new(3);

            struct Guarded<'a> {
                permit: SemaphorePermit<'a>,
                owned: Option<OwnedSemaphorePermit>,
            }

            async fn guard(semaphore: &Arc<Semaphore>) -> Result<Guarded<'_>, AcquireError> {
                let permit = semaphore.acquire().await?;
                let owned = semaphore.clone().acquire_many_owned(2).await?;
                Ok(Guarded { permit, owned: Some(owned) })
            }

            #[tokio::test]
            async fn runs() {
                assert!(Semaphore::MAX_PERMITS >= 3);
                assert_eq!(GLOBAL.available_permits(), 3);
                GLOBAL.acquire().await.unwrap().forget();
                assert_eq!(GLOBAL.available_permits(), 2);

                let semaphore = Arc::new(Semaphore::new(4));
                let Guarded { permit, owned } = guard(&semaphore).await.unwrap();
                let mut owned = owned.unwrap();
                assert_eq!((permit.num_permits(), owned.num_permits()), (1, 2));
                let shared: Arc<Semaphore> = owned.semaphore().clone();
                assert_eq!(shared.available_permits(), 1);
                let split: OwnedSemaphorePermit = owned.split(1).unwrap();
                assert!(owned.split(2).is_none());
                let _ = owned.merge(split);
                assert_eq!(owned.num_permits(), 2);
                assert!(matches!(semaphore.try_acquire_many(2), Err(TryAcquireError::NoPermits)));
                let last = semaphore.try_acquire().unwrap();
                assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);

                let waiting = tokio::spawn(semaphore.clone().acquire_owned());
                tokio::task::yield_now().await;
                drop(permit);
                drop(waiting.await.unwrap().unwrap());
                drop((last, owned));
                assert_eq!(semaphore.available_permits(), 4);
                drop(semaphore.clone().try_acquire_owned().unwrap());
                drop(semaphore.clone().try_acquire_many_owned(4).unwrap());
                drop(semaphore.acquire_many(4).await.unwrap());

                let all = semaphore.acquire_many(4).await.unwrap();
                let end = tokio::spawn({
                    let semaphore = semaphore.clone();
                    async move { semaphore.acquire().await.map(drop) }
                });
                tokio::task::yield_now().await;
                semaphore.close();
                let error: AcquireError = end.await.unwrap().unwrap_err();
                let _: &dyn std::error::Error = &error;
                assert!(semaphore.is_closed());
                assert!(matches!(semaphore.try_acquire(), Err(TryAcquireError::Closed)));
                drop(all);
            }
        }
    };
}

code_for_tokio!(against_tokio, tokio::sync);
code_for_tokio!(against_this_crate, semaphore_core);
