//! An HTTP/2 server scripted by a test: h2's server side on a thread, with responses from an async closure. It polls
//! everything repeatedly, so it needs no runtime.

use crate::scripted::{ScriptedServer, ServerCounts};
use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{RecvStream, SendStream};
use http::{Request, Response};
use loadline_base::clock::Clock;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The pause after all tasks were polled.
const ROUND: Duration = Duration::from_micros(50);

/// A test's instruction for the connection of an exchange.
#[derive(Debug, Clone, Copy)]
pub(super) enum ScriptedOrder {
    /// Sends GOAWAY, and closes the connection after its streams have ended.
    GoAway,
    /// Closes the connection without GOAWAY.
    HangUp,
}

/// One request as the closure sees it.
pub(super) struct Exchange {
    pub(super) request: Request<RecvStream>,
    pub(super) respond: SendResponse<Bytes>,
    /// The number of the request, from 0.
    pub(super) nth: u64,
    orders: Sender<ScriptedOrder>,
    counts: Arc<ServerCounts>,
}

impl Exchange {
    /// Sends the head of a response; returns the stream for the body.
    pub(super) fn head(&mut self, status: u16) -> SendStream<Bytes> {
        self.try_head(status).unwrap()
    }

    /// Like [`Exchange::head`], but `None` if the client no longer wants the response.
    fn try_head(&mut self, status: u16) -> Option<SendStream<Bytes>> {
        let response = Response::builder().status(status).header("x-kind", "test").body(()).unwrap();
        self.respond.send_response(response, false).ok()
    }

    pub(super) fn say(&mut self, status: u16, body: impl Into<Bytes>) {
        if let Some(mut stream) = self.try_head(status) {
            let _ = stream.send_data(body.into(), true);
        }
    }

    pub(super) fn order(&self, order: ScriptedOrder) {
        let _ = self.orders.send(order);
    }

    pub(super) async fn body(&mut self) -> Vec<u8> {
        let mut whole = Vec::new();
        while let Some(Ok(piece)) = self.request.body_mut().data().await {
            let _ = self.request.body_mut().flow_control().release_capacity(piece.len());
            whole.extend_from_slice(&piece);
        }
        whole
    }

    /// Sends nothing until the test ends.
    pub(super) async fn hang(&self) {
        while !self.counts.over.load(SeqCst) {
            pause(1).await;
        }
    }
}

/// Pauses for this many milliseconds.
pub(super) async fn pause(ms: u64) {
    let clock = Clock::start();
    let end = clock.now() + Duration::from_millis(ms);
    poll_fn(|_| if clock.now() < end { Poll::Pending } else { Poll::Ready(()) }).await;
}

/// Starts an HTTP/2 server with h2's default settings.
pub(super) fn start<S, F>(script: S) -> ScriptedServer
where
    S: Fn(Exchange) -> F + Send + 'static,
    F: Future<Output = ()> + 'static,
{
    start_with(&Builder::new(), script)
}

pub(super) fn start_with<S, F>(settings: &Builder, script: S) -> ScriptedServer
where
    S: Fn(Exchange) -> F + Send + 'static,
    F: Future<Output = ()> + 'static,
{
    let settings = settings.clone();
    ScriptedServer::listen("127.0.0.1:0", move |listener, counts| run(&listener, &settings, counts, script))
}

type ServerTask = Pin<Box<dyn Future<Output = ()>>>;

/// Tasks spawned by others in this round.
type Begun = Rc<RefCell<Vec<ServerTask>>>;

/// Accepts connections and polls all tasks until the test ends.
fn run<S, F>(listener: &TcpListener, settings: &Builder, counts: &Arc<ServerCounts>, script: S)
where
    S: Fn(Exchange) -> F + 'static,
    F: Future<Output = ()> + 'static,
{
    let (script, begun) = (Rc::new(script), Begun::default());
    let mut tasks: Vec<ServerTask> = Vec::new();
    let mut context = Context::from_waker(Waker::noop());
    while !counts.over.load(SeqCst) {
        while let Ok((stream, _)) = listener.accept() {
            counts.connections.fetch_add(1, SeqCst);
            stream.set_nodelay(true).unwrap();
            stream.set_nonblocking(true).unwrap();
            let connection = serve(Socket(stream), settings.clone(), counts.clone(), script.clone(), begun.clone());
            tasks.push(Box::pin(connection));
        }
        tasks.retain_mut(|task| task.as_mut().poll(&mut context).is_pending());
        tasks.append(&mut begun.borrow_mut());
        thread::sleep(ROUND);
    }
}

async fn serve<S, F>(stream: Socket, settings: Builder, counts: Arc<ServerCounts>, script: Rc<S>, begun: Begun)
where
    S: Fn(Exchange) -> F + 'static,
    F: Future<Output = ()> + 'static,
{
    // Many tests are about broken connections.
    let Ok(mut connection) = settings.handshake::<_, Bytes>(stream).await else { return };
    let (orders, ordered) = channel();
    loop {
        let next = poll_fn(|context| match ordered.try_recv() {
            Ok(order) => Poll::Ready(Err(order)),
            Err(_) => connection.poll_accept(context).map(Ok),
        });
        match next.await {
            Ok(Some(Ok((request, respond)))) => {
                let nth = counts.requests.fetch_add(1, SeqCst);
                let busy = counts.busy.fetch_add(1, SeqCst) + 1;
                counts.busy_max.fetch_max(busy, SeqCst);
                let exchange = Exchange { request, respond, nth, orders: orders.clone(), counts: Arc::clone(&counts) };
                let (answer, counts) = (script(exchange), Arc::clone(&counts));
                begun.borrow_mut().push(Box::pin(async move {
                    answer.await;
                    counts.busy.fetch_sub(1, SeqCst);
                }));
            }
            Err(ScriptedOrder::GoAway) => connection.graceful_shutdown(),
            Ok(_) | Err(ScriptedOrder::HangUp) => return,
        }
    }
}

/// A socket that is polled again if it would block.
struct Socket(TcpStream);

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = self.0.read(into.initialize_unfilled());
        unless_it_blocks(read).map_ok(|bytes| into.advance(bytes))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        unless_it_blocks(self.0.write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.shutdown(std::net::Shutdown::Write))
    }
}

fn unless_it_blocks(done: io::Result<usize>) -> Poll<io::Result<usize>> {
    match done {
        Err(cause) if cause.kind() == ErrorKind::WouldBlock => Poll::Pending,
        done => Poll::Ready(done),
    }
}
