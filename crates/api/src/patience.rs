//! A connection whose other end must read: whoever takes nothing of what is
//! said for half a minute is hung up on, and what waited for them is freed.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How long something may wait to be read.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// A wait that ends.
type Wait = Option<Pin<Box<Sleep>>>;

/// A connection that does not wait for ever.
#[derive(Debug)]
pub struct Patient<Io> {
    io: Io,
    writes: Wait,
    flushes: Wait,
}

impl<Io> Patient<Io> {
    /// Over this connection.
    pub const fn new(io: Io) -> Self {
        Self {
            io,
            writes: None,
            flushes: None,
        }
    }
}

/// What was done, or that it took too long.
fn within<T>(
    wait: &mut Wait,
    context: &mut Context<'_>,
    done: Poll<io::Result<T>>,
) -> Poll<io::Result<T>> {
    if done.is_ready() {
        *wait = None;
        return done;
    }
    let wait = wait.get_or_insert_with(|| Box::pin(sleep(WRITE_TIMEOUT)));
    match wait.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
        Poll::Pending => Poll::Pending,
    }
}

impl<Io: AsyncRead + Unpin> AsyncRead for Patient<Io> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, into)
    }
}

impl<Io: AsyncWrite + Unpin> AsyncWrite for Patient<Io> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.io).poll_write(context, bytes);
        within(&mut self.writes, context, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.io).poll_write_vectored(context, parts);
        within(&mut self.writes, context, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.io).poll_flush(context);
        within(&mut self.flushes, context, done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.io).poll_shutdown(context);
        within(&mut self.flushes, context, done)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_does_not_read_is_hung_up_on() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut ours = Patient::new(ours);
        let begun = Instant::now();
        let writing = tokio::spawn(async move { ours.write_all(&[7; 64]).await });
        // One who reads now and then gets everything so far.
        tokio::time::sleep(Duration::from_secs(20)).await;
        theirs.read_exact(&mut [0; 16]).await.unwrap();
        let error = writing.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed().as_secs(), 50);
    }
}
