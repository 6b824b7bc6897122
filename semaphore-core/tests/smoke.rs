//! Placeholder
#![cfg(not(any(feature = "loom", feature = "shuttle")))]
use semaphore_core::*;
use std::sync::Arc;

#[test]
fn threads() {
    let s = Arc::new(Semaphore::new(3));
    let rt = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_time()
        .build()
        .unwrap();
    let mut js = vec![];
    for t in 0..16u32 {
        let s = s.clone();
        js.push(rt.spawn(async move {
            for i in 0..20000u32 {
                let k = 1 + (t + i) % 3;
                if i % 3 == 0 {
                    let mut f = s.acquire_many(k).enqueue();
                    if i % 2 == 0 {
                        use futures_util::FutureExt;
                        drop((&mut f).now_or_never().map(Result::unwrap));
                    }
                    tokio::task::yield_now().await;
                    if i % 4 == 0 {
                        continue;
                    }
                    drop(f);
                } else {
                    let l = s.acquire_many(k).await.unwrap();
                    if i % 7 == 0 {
                        tokio::task::yield_now().await;
                    }
                    drop(l);
                }
            }
        }));
    }
    for j in js {
        rt.block_on(j).unwrap();
    }
    assert_eq!(s.available_permits(), 3);
    assert_eq!(s.waiters(), 0);
}
