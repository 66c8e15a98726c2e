//! Which messages a server may send in answer to which.

use pgweir_wire::backend::Tag;

use super::{Kind, Progress};

/// Whether an entry allows a message.
pub(super) enum Allowed {
    No,
    /// Yes, and more of the reply follows.
    More,
    /// Yes, and the reply is over.
    Last,
    /// Yes: an error.
    Error,
}

/// The table of replies (documentation, "Message Flow"). What is allowed in none of the situations
/// below is not allowed.
#[inline]
pub(super) fn allowed(kind: &Kind, progress: Progress, answered: bool, tag: Tag) -> Allowed {
    use Allowed::{Error, Last, More, No};
    let when = |holds: bool, allowed: Allowed| if holds { allowed } else { No };
    match (kind, tag) {
        (_, Tag::ErrorResponse) => Error,
        (Kind::Sync, Tag::ReadyForQuery) => Last,
        (Kind::Query { .. } | Kind::FunctionCall, Tag::ReadyForQuery) => {
            let over = answered && progress == Progress::Open;
            when(over || progress == Progress::Failed, Last)
        }
        (Kind::Query { .. } | Kind::FunctionCall | Kind::Sync, _)
            if progress == Progress::Failed =>
        {
            No
        }
        (Kind::Query { .. } | Kind::Execute { .. }, Tag::CopyData | Tag::CopyDone) => when(
            matches!(progress, Progress::CopyOut | Progress::CopyBoth { sends: true, .. }),
            More,
        ),
        (
            Kind::Query { .. } | Kind::Execute { .. },
            Tag::CopyInResponse | Tag::CopyOutResponse | Tag::CopyBothResponse,
        ) => when(progress == Progress::Open, More),
        // Behind a stream of WAL comes, where there is one, the next timeline.
        (Kind::Query { .. }, Tag::RowDescription) => when(
            matches!(
                progress,
                Progress::Open | Progress::Rows | Progress::CopyBoth { sends: false, .. }
            ),
            More,
        ),
        (Kind::Query { .. }, Tag::DataRow) => when(progress == Progress::Rows, More),
        (Kind::Query { .. }, Tag::EmptyQueryResponse) => when(progress == Progress::Open, More),
        (Kind::Query { .. }, Tag::CommandComplete) => when(progress != Progress::CopyOut, More),
        (Kind::Execute { .. }, Tag::DataRow) => when(progress == Progress::Open, More),
        (Kind::Execute { .. }, Tag::EmptyQueryResponse | Tag::PortalSuspended) => {
            when(progress == Progress::Open, Last)
        }
        (Kind::Execute { .. }, Tag::CommandComplete) => when(progress != Progress::CopyOut, Last),
        (Kind::FunctionCall, Tag::FunctionCallResponse) => when(!answered, More),
        (Kind::Parse { .. }, Tag::ParseComplete) => Last,
        (Kind::Bind, Tag::BindComplete) => Last,
        (Kind::ClosePortal | Kind::CloseStatement { .. }, Tag::CloseComplete) => Last,
        (Kind::DescribeStatement { .. }, Tag::ParameterDescription) => {
            when(progress == Progress::Open, More)
        }
        (Kind::DescribeStatement { .. }, Tag::RowDescription | Tag::NoData) => {
            when(progress == Progress::HalfDescribed, Last)
        }
        (Kind::DescribePortal, Tag::RowDescription | Tag::NoData) => Last,
        (
            Kind::Bind
            | Kind::ClosePortal
            | Kind::CloseStatement { .. }
            | Kind::CopyEnd
            | Kind::DescribePortal
            | Kind::DescribeStatement { .. }
            | Kind::Execute { .. }
            | Kind::FunctionCall
            | Kind::Parse { .. }
            | Kind::Query { .. }
            | Kind::Sync,
            _,
        ) => No,
    }
}

/// Whether a message comes before anything is carried out, or says only what rows will look like.
pub(crate) fn is_overture(tag: Tag) -> bool {
    matches!(
        tag,
        Tag::ParseComplete
            | Tag::BindComplete
            | Tag::CloseComplete
            | Tag::ParameterDescription
            | Tag::RowDescription
            | Tag::NoData
    )
}
