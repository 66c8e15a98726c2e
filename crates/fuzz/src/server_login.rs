//! How a server lets us in: what it says until its first ReadyForQuery.
//!
//! What holds: it comes to the same however its bytes arrive; it is logged in to only if its
//! messages stand in an order that PostgreSQL has, and else is given up; it is told no more than it
//! has asked for; and once it has begun with SCRAM it lets nobody in before it has ended that.

use pgweir_engine::ServerActivity;
use pgweir_wire::backend::{
    Authentication, Tag, parse_backend_key_data, parse_parameter_status, parse_ready_for_query,
};
use pgweir_wire::{HEADER_LEN, Header, Initial};

use crate::cut::Cut;
use crate::engine_client::startup;
use crate::postgres::Manners;
use crate::world::{Outcome, Setting, World};

/// The longest message that a login has, its header included.
const LONGEST: usize = HEADER_LEN + 30_000;

/// More digits than this in a number of iterations are work for nothing; `scram_client` sees to the
/// limit on it.
const CHEAP_DIGITS: usize = 2;

/// Messages of a server, from its first on. What stands behind its login is left out.
pub(crate) fn run(data: &[u8]) {
    if is_hard_work(data) {
        return;
    }
    let order = Order::of(data);
    let login = &data[..order.end];
    let (whole, asked) = play(login, Cut::Whole, Some(order));
    assert!(asked <= order.questions, "{asked} answers to {} questions", order.questions);
    let (pieces, _) = play(login, Cut::mostly_once(login), None);
    assert_eq!(pieces, whole, "cutting the stream makes a difference");
}

/// Where a login has come to, by the order of its messages alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing was asked for.
    Beginning,
    /// The password was asked for, or a hash that it is part of.
    Asked,
    /// SCRAM has begun.
    Begun,
    /// SCRAM goes on.
    Challenged,
    /// SCRAM is over.
    Proven,
    LetIn,
    /// The server takes queries.
    Ready,
    /// It has refused us, or said what it may not say.
    Refused,
}

/// What messages of a login come to, and how many bytes they are.
#[derive(Clone, Copy, Debug)]
struct Order {
    stage: Stage,
    end: usize,
    /// Answers that were asked for.
    questions: usize,
}

impl Order {
    fn of(data: &[u8]) -> Self {
        let mut order = Self { stage: Stage::Beginning, end: 0, questions: 0 };
        while !matches!(order.stage, Stage::Ready | Stage::Refused) {
            let rest = &data[order.end..];
            let header = match Header::parse(rest) {
                Ok(Some(header)) if header.message_len() <= LONGEST => header,
                // More is to come, so that what is there is part of the input.
                Ok(None) => return Self { end: data.len(), ..order },
                Ok(Some(_)) | Err(_) => {
                    return Self { stage: Stage::Refused, end: data.len(), ..order };
                }
            };
            let Some(body) = rest.get(HEADER_LEN..header.message_len()) else {
                return Self { end: data.len(), ..order };
            };
            order.end += header.message_len();
            order.stage = order.behind(Tag::of(header).ok(), body);
        }
        order
    }

    /// What comes of a message.
    fn behind(&mut self, tag: Option<Tag>, body: &[u8]) -> Stage {
        let let_in = self.stage == Stage::LetIn;
        match tag {
            Some(Tag::Authentication) => self.challenged(body),
            Some(Tag::NoticeResponse | Tag::NegotiateProtocolVersion) => self.stage,
            Some(Tag::ParameterStatus) if let_in && parse_parameter_status(body).is_ok() => {
                Stage::LetIn
            }
            Some(Tag::BackendKeyData) if let_in && parse_backend_key_data(body).is_ok() => {
                Stage::LetIn
            }
            Some(Tag::ReadyForQuery) if let_in && parse_ready_for_query(body).is_ok() => {
                Stage::Ready
            }
            // An error refuses us, and so does all else.
            _ => Stage::Refused,
        }
    }

    fn challenged(&mut self, body: &[u8]) -> Stage {
        let Ok(asked) = Authentication::parse(body) else { return Stage::Refused };
        let next = match (asked, self.stage) {
            (Authentication::Ok, Stage::Beginning | Stage::Asked | Stage::Proven) => {
                return Stage::LetIn;
            }
            (Authentication::CleartextPassword, Stage::Beginning) => Stage::Asked,
            (Authentication::Md5Password(_), Stage::Beginning) => Stage::Asked,
            (Authentication::Sasl(_), Stage::Beginning) => Stage::Begun,
            (Authentication::SaslContinue(_), Stage::Begun) => Stage::Challenged,
            (Authentication::SaslFinal(_), Stage::Challenged) => return Stage::Proven,
            _ => return Stage::Refused,
        };
        self.questions += 1;
        next
    }

    /// Whether more than the order decides: whether what SCRAM says is right.
    fn rests_on_proofs(self) -> bool {
        self.questions > 0 && self.stage != Stage::Refused
    }
}

/// Whether some number that may be one of iterations is long.
fn is_hard_work(data: &[u8]) -> bool {
    let numbers = data.windows(3).enumerate().filter(|(_, bytes)| bytes == b",i=");
    numbers.map(|(at, _)| &data[at + 3..]).any(|number| {
        number.iter().take_while(|digit| digit.is_ascii_digit()).count() > CHEAP_DIGITS
    })
}

/// What comes of a login, and how many times we have answered.
fn play(login: &[u8], cut: Cut, order: Option<Order>) -> (Outcome, usize) {
    let mut world = World::new(Setting::plain(Manners::None, cut));
    let client = world.connect();
    world.send(client, &startup());
    world.settle();
    world.begin();
    world.server_sends(login);
    world.settle();
    if let Some(order) = order {
        judge(&world, order);
    }
    (world.outcome(), answers(world.first_written()))
}

fn judge(world: &World, order: Order) {
    let snapshot = world.engine().snapshot(world.now());
    let is_there = |activity| snapshot.servers.iter().any(|server| server.state == activity);
    let refused = !world.events().is_empty();
    let still = is_there(ServerActivity::Login) && !refused;
    match order.stage {
        Stage::Refused => assert!(refused, "a server that may not be trusted is"),
        Stage::Ready if order.rests_on_proofs() => assert!(refused || !still, "{order:?}"),
        Stage::Ready => assert!(!refused && !still, "a server that is ready is not used"),
        _ if order.rests_on_proofs() => assert!(refused || still, "{order:?}"),
        _ => assert!(still, "a login that is under way has ended"),
    }
}

/// How many messages stand behind the startup packet, up to the first query.
fn answers(written: &[u8]) -> usize {
    let Ok(Some((Initial::Startup(_), length))) = Initial::parse(written) else {
        panic!("a server is sent something else than a startup packet first");
    };
    let mut rest = &written[length..];
    let mut answers = 0;
    while let Ok(Some(header)) = Header::parse(rest)
        && header.tag == b'p'
    {
        answers += 1;
        rest = &rest[header.message_len()..];
    }
    answers
}
