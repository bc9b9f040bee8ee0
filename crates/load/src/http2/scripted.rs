//! An HTTP/2 server that does as a test says: h2's server side on a thread, answers made by an async closure.

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{RecvStream, SendStream};
use http::{Request, Response};
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::task::Poll;
use std::thread;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{LocalSet, spawn_local};

/// An order of a test to the connection of an exchange.
#[derive(Debug, Clone, Copy)]
pub(super) enum ScriptedOrder {
    /// GOAWAY, then the end once its streams have ended.
    GoAway,
    /// The end of the connection without a word.
    HangUp,
}

/// One request as the closure sees it.
pub(super) struct Exchange {
    pub(super) request: Request<RecvStream>,
    pub(super) respond: SendResponse<Bytes>,
    /// Counts all requests, from 0.
    pub(super) nth: u64,
    orders: UnboundedSender<ScriptedOrder>,
    shared: Arc<Shared>,
}

impl Exchange {
    /// Sends the head of an answer; the stream that takes the body.
    pub(super) fn head(&mut self, status: u16) -> SendStream<Bytes> {
        self.try_head(status).unwrap()
    }

    /// `None` where the client wants it no more.
    fn try_head(&mut self, status: u16) -> Option<SendStream<Bytes>> {
        let response = Response::builder().status(status).header("x-kind", "test").body(()).unwrap();
        self.respond.send_response(response, false).ok()
    }

    /// A whole answer with a body.
    pub(super) fn say(&mut self, status: u16, body: impl Into<Bytes>) {
        if let Some(mut stream) = self.try_head(status) {
            let _ = stream.send_data(body.into(), true);
        }
    }

    pub(super) fn order(&self, order: ScriptedOrder) {
        let _ = self.orders.send(order);
    }

    /// The whole body of the request.
    pub(super) async fn body(&mut self) -> Vec<u8> {
        let mut whole = Vec::new();
        while let Some(Ok(piece)) = self.request.body_mut().data().await {
            let _ = self.request.body_mut().flow_control().release_capacity(piece.len());
            whole.extend_from_slice(&piece);
        }
        whole
    }

    /// Answers nothing until the test is over.
    pub(super) async fn hang(&self) {
        while !self.shared.over.load(SeqCst) {
            pause(1).await;
        }
    }
}

/// Rests for some milliseconds.
pub(super) async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

#[derive(Default)]
struct Shared {
    over: AtomicBool,
    requests: AtomicU64,
    connections: AtomicU64,
    busy: AtomicU64,
    busy_max: AtomicU64,
}

/// Listens until dropped.
pub(super) struct ScriptedH2Server {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

impl ScriptedH2Server {
    pub(super) fn start<S, F>(script: S) -> Self
    where
        S: Fn(Exchange) -> F + Send + 'static,
        F: Future<Output = ()> + 'static,
    {
        Self::start_with(&Builder::new(), script)
    }

    pub(super) fn start_with<S, F>(settings: &Builder, script: S) -> Self
    where
        S: Fn(Exchange) -> F + Send + 'static,
        F: Future<Output = ()> + 'static,
    {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let thread = thread::spawn({
            let (shared, settings) = (Arc::clone(&shared), settings.clone());
            move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                LocalSet::new().block_on(&runtime, accept(listener, settings, shared, script)).unwrap();
            }
        });
        Self { address, shared, thread: Some(thread) }
    }

    /// Requests read so far.
    pub(super) fn requests(&self) -> u64 {
        self.shared.requests.load(SeqCst)
    }

    /// Connections accepted so far.
    pub(super) fn connections(&self) -> u64 {
        self.shared.connections.load(SeqCst)
    }

    /// The most requests that were under way at once.
    pub(super) fn busy_max(&self) -> u64 {
        self.shared.busy_max.load(SeqCst)
    }
}

impl Drop for ScriptedH2Server {
    fn drop(&mut self) {
        self.shared.over.store(true, SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

async fn accept<S, F>(
    listener: std::net::TcpListener,
    settings: Builder,
    shared: Arc<Shared>,
    script: S,
) -> io::Result<()>
where
    S: Fn(Exchange) -> F + 'static,
    F: Future<Output = ()> + 'static,
{
    let (listener, script) = (TcpListener::from_std(listener)?, Rc::new(script));
    while !shared.over.load(SeqCst) {
        // A pause in between looks whether the test is over.
        if let Ok(Ok((stream, _))) = tokio::time::timeout(Duration::from_millis(5), listener.accept()).await {
            shared.connections.fetch_add(1, SeqCst);
            stream.set_nodelay(true)?;
            spawn_local(serve(stream, settings.clone(), Arc::clone(&shared), Rc::clone(&script)));
        }
    }
    Ok(())
}

async fn serve<S, F>(stream: TcpStream, settings: Builder, shared: Arc<Shared>, script: Rc<S>)
where
    S: Fn(Exchange) -> F + 'static,
    F: Future<Output = ()> + 'static,
{
    // A broken connection is what many tests are about.
    let Ok(mut connection) = settings.handshake::<_, Bytes>(stream).await else { return };
    let (orders, mut ordered): (_, UnboundedReceiver<ScriptedOrder>) = unbounded_channel();
    loop {
        let next = poll_fn(|context| match ordered.poll_recv(context) {
            Poll::Ready(order) => Poll::Ready(Err(order)),
            Poll::Pending => connection.poll_accept(context).map(Ok),
        });
        match next.await {
            Ok(Some(Ok((request, respond)))) => {
                let nth = shared.requests.fetch_add(1, SeqCst);
                let busy = shared.busy.fetch_add(1, SeqCst) + 1;
                shared.busy_max.fetch_max(busy, SeqCst);
                let exchange = Exchange { request, respond, nth, orders: orders.clone(), shared: Arc::clone(&shared) };
                let (answer, shared) = (script(exchange), Arc::clone(&shared));
                spawn_local(async move {
                    answer.await;
                    shared.busy.fetch_sub(1, SeqCst);
                });
            }
            Err(Some(ScriptedOrder::GoAway)) => connection.graceful_shutdown(),
            Ok(_) | Err(Some(ScriptedOrder::HangUp) | None) => return,
        }
    }
}
