//! Marks of rare paths.
//!
//! A branch that exists for an order of events, a loss, a failure or a limit is taken seldom, and
//! whoever changes it wants to know that a test takes it. So each such branch says that it was
//! taken, the simulator counts, and the seeds that every change is tested with have to reach all of
//! them. What no simulation can reach, or hardly one, is reached by a test of its own, of the
//! driver, of the worker or of threads, which says so. What cannot be reached has no mark, and says
//! why where it stands, unless it is the other side of a lookup (`let … else { return }`): that is
//! there so that a mistake of ours costs one client and not all. What only weighs one way against
//! another, as how many servers are shared, is no rare path, nor is the reading of a text.
//!
//! Which branches are taken seldom a coverage tool tells: docs/simulation.md says how.
//!
//! Nothing is counted where assertions are off: in the program that is shipped a mark is not one
//! instruction, whatever else is built beside it.
//!
//! Long because: it has a row for each rare path.

use std::cell::Cell;
use std::fmt;

/// Makes [`Mark`] and the list of all marks from one list.
macro_rules! marks {
    (
        $($(#[$meaning:meta])+ $name:ident,)+
        not_simulated:
        $($(#[$its_meaning:meta])+ $scripted:ident,)+
    ) => {
        /// A rare path of the engine, the driver or the worker. Each is taken at one place in the
        /// code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mark {
            $($(#[$meaning])+ $name,)+
            $($(#[$its_meaning])+ $scripted,)+
        }

        impl Mark {
            /// All of them, in their order.
            pub const ALL: &[Self] = &[$(Self::$name,)+ $(Self::$scripted,)+];

            /// Those that no simulation takes, or hardly one: each has a test of its own.
            pub const NOT_SIMULATED: &[Self] = &[$(Self::$scripted,)+];
        }
    };
}

marks! {
    // Clients on their way in.
    /// A startup packet is none.
    StartupMalformed,
    /// More has come with a request for encryption than the request.
    EncryptionWithMore,
    /// Encryption is asked for again.
    EncryptionAskedTwice,
    /// A startup packet names no user.
    LoginOfNobody,
    /// The options of a startup packet have a switch that is not understood.
    LoginWithUnknownSwitch,
    /// There is no pool of that name.
    LoginNowhere,
    /// Somebody comes while clients are asked to leave.
    LoginWhileDraining,
    /// A client ends its stream in the middle of its login.
    LoginCutOff,
    /// More has come with a message of a login than that.
    LoginGoesOn,
    /// A login takes too long.
    LoginTooSlow,
    /// There is no server for a login, which ends it.
    LoginWithoutServer,
    /// There are `max_logins` others.
    TooManyLogins,
    /// There are many more than `max_clients`.
    TooManyNewcomers,
    /// There are `max_clients` others.
    TooManyClients,
    /// There are `max_db_client_connections` others.
    TooManyOfDatabase,
    /// There are `max_user_client_connections` others.
    TooManyOfUser,
    /// A client goes to the worker that has its pool.
    ClientHandedOver,
    /// A request for a cancel goes to the worker that has the client.
    CancelHandedOver,

    // Units that are not simply sent.
    /// The end of a batch was waited for long enough.
    BatchOverdue,
    /// A unit is longer than what is waited for in whole.
    UnitTooLongToWait,
    /// A message of a client that has a server is sent piece by piece.
    MessageFromClientInPieces,
    /// A text is read for what it leaves behind while it passes in pieces.
    TextInPieces,
    /// Of the text of a Parse only the beginning has come.
    UnendedParse,
    /// What is left of a message of a client is dropped.
    BodyDropped,
    /// COPY data come when the COPY is over and the server is another's.
    CopyDataWithoutServer,
    /// COPY data come when the COPY is over.
    CopyDataTooLate,
    /// The end of a COPY comes when it is over.
    CopyEndTooLate,
    /// Something comes behind a client's farewell.
    InputBehindFarewell,
    /// A message of a unit is answered by us.
    UnitRefused,
    /// Of its last message a part is still to come.
    RefusedInPieces,
    /// A client has sent more behind a unit that is answered by us, which may rest on that.
    RefusedUnitBoreMore,
    /// The same, when the rest of it has come.
    PassedUnitBoreMore,
    /// A message of a refused batch has not come whole: it is looked at when it has.
    PassedMessageInPieces,
    /// A message of a refused batch is dropped.
    RefusedBatchGoesOn,
    /// A unit waits for the one before, since others wait for a server.
    HeldForOthers,
    /// A unit waits for the one before, which must not begin a transaction.
    HeldInStatementMode,
    /// A message waits until it is known whose the server's unnamed statement is.
    HeldForUnnamed,
    /// A message waits until it is known what its name means, or what the server has.
    HeldForName,
    /// A message waits until it is known what the rows of its statement are like on the server.
    HeldForRows,
    /// It was made by the same unit.
    HeldForOwnRows,
    /// A client gives a name again that it has given.
    NameTakenTwice,
    /// A client prepares what its server has already.
    StatementReadAgain,
    /// A server makes a statement that its client has prepared elsewhere.
    StatementMade,
    /// A client removes by SQL what it has prepared by the protocol.
    DeallocatedBySql,
    /// A message waits for the description of a statement of its own batch, which the server has
    /// closed since to make room.
    HeldForDescription,
    /// A message waits until it is known what the rows of its statement are like, which SQL may
    /// name from now on.
    HeldForShown,
    /// They are not what its client was told.
    ShownRowsChanged,
    /// A name is given anew before that is told.
    ShownNameGivenAnew,
    /// They are told when the name means something else.
    ShownForgotten,
    /// In a transaction that has failed, where it is refused anyway.
    ChangedInFailed,
    /// The unnamed statement was made again, and is used when it is known what its rows are like.
    HeldForUnnamedRows,
    /// The rows of an unnamed statement that is made again are not what its client was told.
    UnnamedRowsChanged,
    /// What the rows of a statement are like was said when nobody noted it, or was not said.
    RowsMissed,
    /// What a statement is like is said when its client is gone.
    DescribedForNobody,
    /// The rows of a statement that a server has are not what its client was told.
    RowsOutOfDate,
    /// They are not what it was told where it is made again, either.
    RowsChanged,
    /// A server keeps no more statements: the one that was used least lately goes.
    StatementSurplus,
    /// A client names in SQL what it has prepared by the protocol.
    NamesShown,
    /// The same, and it is not done, for the batch has failed before.
    NameNotShown,
    /// What its rows are like is not said.
    ShownNotDescribed,
    /// None is shown where nothing is carried out.
    NotShownInFailed,
    /// The names in a message cannot be read.
    NamesUnreadable,
    /// What a client sends is no message, or none that may come now.
    ProtocolViolated,
    /// A Query or a function call ends an open batch.
    BatchEndedByQuery,
    /// A unit is sent and will not be answered, for the batch before it has failed.
    UnitSkippedWhenSent,
    /// A statement that is not known stands behind others.
    OnTrial,
    /// It takes nearly too long.
    TrialBeginsAnew,
    /// A reload has ended that servers are shared, for which somebody waits.
    SharingEnded,
    /// A statement has taken too long, and shares no server for a while.
    StatementBanned,
    /// One that is trusted takes too long, and is forgiven.
    OverrunForgiven,
    /// One server more is to be shared than there are.
    HotWanted,
    /// A statement is prepared under a name behind an error that is known.
    ParsePassedOver,
    /// A message of a batch is sent that the server will pass over.
    MessageSkippedWhenSent,
    /// A Parse of the unnamed statement is too long to keep.
    UnnamedTooLong,
    /// The same that is executed: it may name what its client has prepared.
    LongMayName,
    /// The unnamed statement is made again on another server.
    UnnamedMadeAgain,
    /// Another client's unnamed statement is closed.
    UnnamedOfOtherClosed,
    /// What the unnamed statement is nobody knows.
    UnnamedInDoubt,

    // Replies that are not simply one for each message.
    /// A Parse of what clients share fails, or is skipped.
    StatementNotMade,
    /// A Close of ours is skipped.
    StatementNotClosed,
    /// What its rows are like may have been said meanwhile.
    RowsMissedByClose,
    /// A client's Close is skipped.
    NameNotTaken,
    /// The same, and there is nothing to go back to.
    NotTakenButGone,
    /// All that a client has prepared is removed at once.
    NamesCleared,
    /// The server is lost on which they were to be.
    NamesNotCleared,
    /// The same of one name.
    DeallocationLost,
    /// A Parse or a Query fails that replaces the unnamed statement.
    UnnamedUnclear,
    /// A row limit is reached.
    PortalSuspended,
    /// A Sync fails.
    SyncFailed,
    /// A batch fails whose Sync has not been sent.
    BatchFailedWithoutSync,
    /// A Query or a function call was sent behind a batch that has failed.
    QueryBehindFailedBatch,
    /// A unit goes on until the Sync that counts.
    UnitGoesOn,
    /// A client goes when the rest of a message of its unit has come.
    GoneBehindMessage,
    /// A Sync was sent before the COPY began.
    SyncAheadOfCopy,
    /// A Sync is sent while the server reads COPY data.
    SyncInsideCopy,
    /// The end of a COPY is sent before the COPY has begun.
    CopyEndAhead,
    /// The same, and now the COPY begins.
    CopyEndAheadFound,
    /// The server has ended a COPY by itself whose end was sent.
    CopyEndOfFailedCopy,
    /// What was sent behind a COPY ends it with an error.
    CopyEndedByWhatFollows,
    /// What comes where COPY data may be read waits until it shows whether they are.
    CopyTried,
    /// What a COPY of a batch says behind its data waits for another Sync.
    CopySaysTheRestLater,
    /// A COPY has failed behind whose Execute a Sync was sent: it may be answered.
    SyncInDoubt,
    /// The same when its client is gone.
    SyncInDoubtOfNobody,
    /// Such a Sync was answered when nothing else was owed.
    SyncInDoubtAnswered,
    /// Such a Sync has ended an open batch.
    SyncInDoubtEndsBatch,
    /// Input that waits is looked at again, since units will not be answered.
    WokenByUnansweredUnit,
    /// Input that waits is looked at again, since it is part of a COPY.
    WokenForCopy,
    /// A message that we put into a batch fails.
    InjectedMessageFailed,
    /// A message to a client is passed on in pieces.
    MessageToClientInPieces,
    /// A message is dropped in pieces.
    MessageDroppedInPieces,
    /// A notification comes that the client may not hear.
    NotificationUnheard,
    /// A server says what the listener says, too.
    HeardBehindMark,
    /// A transaction is begun in a pool of statement mode.
    BlockInStatementMode,

    // Servers that are prepared.
    /// A server that nobody has had refuses a client's settings.
    SettingsRefusedByNew,
    /// Another one was asked a moment ago.
    SettingsRefusedLately,
    /// Another one was asked, but not lately.
    SettingsRefusedLongAgo,
    /// No other one can be asked now.
    SettingsWithoutNew,
    /// The last attempt failed so long ago that there may be another one in the place of a server.
    FailedLongAgo,
    /// One that is on its way is to be asked.
    SettingsForComing,
    /// One is opened to be asked, beside the one that refuses.
    SettingsForAnother,
    /// One is opened to be asked, in the place of the one that refuses.
    SettingsForReplacement,
    /// What was put in front of a client's message has failed, and is the first that it hears.
    UnitBegunByError,
    /// Of a client's unit only what is put in front of it was sent, and no more will be.
    BatchOfOursEnded,
    /// A client may have changed settings, and its server is asked what they are.
    SettingsAsked,
    /// A client may have begun or ended what it keeps its server for, which is asked what there is.
    StateAsked,
    /// Nothing is left of that.
    StateGone,
    /// Something is.
    StateThere,
    /// A server did not say what it was asked.
    NotTold,
    /// It was asked often enough, for this unit.
    AskedEnough,
    /// A unit has waited until it was known what keeps the servers of its pool.
    PinsToldToHeld,
    /// The same, and a unit of the client has waited for the answer.
    HeldWhileAsked,
    /// A client keeps a server that has answered us, as it has asked for it before others.
    AskedFirst,
    /// A server does not answer to what it is asked behind a transaction.
    AskedInVain,
    /// Nothing is put back in a transaction while a cancel may still come.
    SettingsAwaitCancel,
    /// What a client has set is put back behind a cancel.
    PutBackBehindCancel,
    /// A unit of the client has waited for the end of a cancel.
    HeldBehindCancel,
    /// There is nothing to put back.
    ReadyBehindCancel,
    /// A message waits until it has.
    HeldForAnswer,
    /// Input waits until its client has heard that the unit before is over.
    HeldForReady,
    /// A unit waits for one that takes settings back.
    HeldForReset,
    /// What the client has asked for at its login is not set any more, and is put back.
    SettingsPutBack,
    /// There is nothing to put back: what had been set is undone.
    NothingPutBack,
    /// Which settings may have been changed is not clear.
    ChangesUnclear,
    /// A statement is used under other settings than those under which it was prepared.
    StatementReadAnew,
    /// What a statement says is read anew, for other names are loud now.
    StatementHeardAnew,

    /// A text is read while a unit in flight may change its encoding.
    EncodingInDoubt,

    /// A statement that a client has prepared for itself is run, and may leave something.
    PreparedIsRun,
    /// The unnamed statement of an earlier batch is run once more.
    UnnamedIsRunAgain,
    /// A statement is not run, for it would keep one server too many.
    PinRefused,
    /// One would leave what its pool refuses.
    PinKindRefused,
    /// What one leaves is let be.
    PinIgnored,
    /// Whether it may be run is known when a server has said what is left on it.
    PinAwaitsAnswer,

    // Whose sequences a server remembers.
    /// A sequence is advanced on a server that remembers those of another, and goes on to.
    SequencesOfSeveral,
    /// The same by what nobody knew of before.
    AdvancedBesideOthers,
    /// A server forgets the sequences of another in front of a client's statement.
    SequencesForgotten,
    /// Its client has advanced none here, or is gone.
    ForgottenForNobody,
    /// A server has forgotten, but somebody has advanced sequences since.
    ForgottenUnasked,
    /// It does so within a batch, of which something waits for that.
    SequencesForgottenInBatch,
    /// What does not ask for a last value is sent right behind the order to forget.
    SentBehindForgetting,
    /// It has not come to that within the batch.
    SequencesNotForgotten,
    /// A server fails to forget the sequences of another client.
    SequencesStuck,
    /// A unit waits for those before it, since the server is to forget in between.
    HeldForSequences,
    /// The same of a message of a batch.
    BatchHeldForSequences,
    /// Nothing is forgotten in a transaction while a cancel may still come.
    SequencesAwaitCancel,
    /// What asks for a last value stands behind the end of a transaction that has failed.
    SequencesBehindFailed,
    /// Behind its end sequences are advanced.
    SeveralBehindFailed,
    /// In a transaction that has failed nothing is forgotten in front of a statement.
    FailedForgetsNothing,
    /// A client is given the server that remembers its sequences.
    LentForSequences,

    // Replication clients, each with a server of its own.
    /// One is opened for one of them.
    DedicatedBeside,
    /// An idle one goes for it.
    DedicatedInPlace,
    /// One that comes free goes for it.
    DedicatedFromQueue,
    /// It cannot be had.
    DedicatedRefused,

    // What servers are started with.
    /// One is opened for a client for which the idle ones were not.
    BornBeside,
    /// The first in the queue gets one under way, rather than that one which is free goes for it.
    BornUnderWay,
    /// Or a new one, for which there is room.
    BornBesideFree,
    /// An idle one makes way for it.
    BornInPlace,
    /// One that comes free makes way for it.
    BornForWaiter,
    /// One is opened for a client in the queue that nothing else will serve.
    BornForQueue,
    /// A login is refused for what its client has asked for.
    BornDead,
    /// That was so a moment ago.
    BarrenLately,
    /// None is opened now, and none makes way.
    BarrenForNow,

    // Who listens.
    /// A client listens.
    Subscribed,
    /// A client listens no more.
    Unsubscribed,
    /// A server listens for a pool's clients.
    BecomesListener,
    /// It was free.
    ListenerWasFree,
    /// It is not told anything more until it has answered.
    ListenerBusy,
    /// What the last client of a server that becomes the listener has set is taken back.
    ListenerCleared,
    /// The same, and a client had kept it to listen.
    ListenerAdopted,
    /// Nobody listens any more.
    ListenerGoes,
    /// Nobody listens on one of its channels any more.
    ChannelOver,
    /// It is lost.
    ListenerLost,
    /// A client goes from its server to the listener, and stays on the server.
    ListenerLostAheadOfMark,
    /// A client goes from one to the other, and the listener counts as there.
    ListenerLostBehindMark,
    /// It does not answer in time, or does not say what it has to.
    ListenerHangs,
    /// A server is lost that has listened, and the listener may be behind.
    LossMarked,
    /// It is told to pass such a mark.
    ListenerMarks,
    /// A listener without a server cannot pass a mark of its own.
    MarkWithoutServer,
    /// The listener has no server that could make one.
    LossUnmarked,
    /// Or it is lost behind the mark that its own client has asked for.
    LostBehindMark,
    /// Or the listener has passed that mark, and the server has not.
    LostBetweenMarks,
    /// Or the listener has not passed the one behind which the server was to listen.
    LostAheadOfMark,
    /// The mark behind which the listener was to listen has failed, or that is lost.
    MarkInVain,
    /// Clients hear that they may have missed something.
    ToldOfMissed,
    /// One that has not heard it yet hears it once, however often the listener is lost meanwhile.
    ToldOnce,
    /// The same when the listener listens on everything again.
    MissedWhileAway,
    /// A client's server hands over to the listener.
    ToListener,
    /// The listener hands over to the server of a client.
    ToServer,
    /// The same while no listener hears where that begins.
    ToServerUnheard,
    /// When both have passed the mark the client does not listen any more.
    SettledUnsubscribed,
    /// A server has listened for its client, which the listener may do again.
    BackToAwaited,
    /// A message waits for that.
    HeldToListen,
    /// Of a batch that waits for that only a part has come.
    BatchMayNotify,
    /// Of a Parse.
    ParseMayNotify,
    /// Of a Query.
    QueryMayNotify,
    /// It executes an unnamed statement whose text is not kept.
    LongMayNotify,
    /// What a client says waits until its server listens for it.
    HeldUntilShown,
    /// What is under way may take back that its server is to listen.
    HeldUntilAgreed,
    /// The transaction in which it was to be so is rolled back.
    ListeningUndone,
    /// A transaction is rolled back in which a client went to its server.
    ShownRolledBack,
    /// It is committed, and another begins in its batch.
    ShownCommitted,
    /// A server listens though the listener does.
    ListensBesides,
    /// A client's server is faster than the listener.
    NotifiedEarly,
    /// A server passes the mark of a client that listens no more.
    MarkOfLeaver,
    /// A server passes a mark when the client does not go from one to the other any more.
    MarkOutOfPlace,
    /// The listener passes a mark that nobody waits for any more.
    MarkSettledBefore,
    /// A server passes a mark that another one has replaced.
    OlderMark,
    /// The end of a unit waits for the listener.
    ReadyDelayed,
    /// The listener has come so far.
    ReadyBehindListener,
    /// A server is asked whether it listens on when the end of the unit before is told.
    AskedBehindReady,
    /// A client listens on nothing any more, and its server on the channel of the marks.
    ListensForUs,
    /// A client is notified by the listener.
    Notified,

    // What is done unseen.
    /// A unit waits until the loud names of its database are known.
    WaitsForNames,
    /// An idle server is asked for them.
    IdleReadsNames,
    /// One that has a client's settings is.
    UnsetToRead,
    /// The server of a client that keeps it is.
    OwnServerReadsNames,
    /// A cancel, or a timeout, has ended that.
    CatalogueAskedAgain,
    /// The server that was to be asked for names does something else.
    AskedIsGone,
    /// A server is lost while it is asked for names.
    LostWhileRead,
    /// It is the first one, and nobody is served before the names are known.
    LostBeforeNames,
    /// Something is created where settings were changed, and may be temporary.
    TemporaryByPath,
    /// A server is lost a moment after it was asked for its catalogue.
    ReadingLostAtOnce,
    /// A client has changed the schema again, and may have used what is not there any more.
    SchemaChangedAgain,
    /// What it has done is undone, in part or in whole, and it may have used that.
    SchemaUndone,
    /// Something of its has failed, and what it has done is undone with that.
    SchemaFailed,
    /// So many servers in a row were lost that were to read it that it counts as unreadable.
    CatalogueLost,
    /// A catalogue could not be read.
    CatalogueUnread,
    /// It is read once more.
    CatalogueReadAgain,
    /// Names are known for which a unit has waited.
    NamesKnownToHeld,
    /// A reload changes which catalogue matters to a pool.
    OtherCatalogue,
    /// A server is lent meanwhile, by what was known before.
    LentElsewhere,
    /// Its client has changed the schema, which nobody reads any more.
    SchemaLeftBehind,
    /// A text names what changes its session.
    Unseen,
    /// A transaction has changed the schema.
    SchemaChanged,
    /// A client has left that has perhaps changed the schema.
    SchemaChangerGone,
    /// By that names have become loud that were not.
    SchemaMadeLoud,
    /// The schema has been read, and somebody has changed it since.
    SchemaStillChanging,
    /// A client has changed the schema of what is another database by now.
    SchemaOfElsewhere,
    /// What a client has changed of the schema could not be read.
    SchemaUnread,
    /// What a client has changed of the schema is read when it has no server any more.
    SchemaReadForLeaver,
    /// A statement that was read under what another client had changed is made again.
    StatementReadStrangely,
    /// A statement stays on a server that was read under what its client had changed.
    MadeStrangely,
    /// A server forgets what functions have planned there for others.
    PlansForgotten,
    /// The same on a server that is set to its next client's settings already.
    PlansAloneForgotten,
    /// A server reports something else than its client was told last.
    ClientToldNews,
    /// A server that comes free has another configuration.
    WelcomesOutdated,
    /// A server that logs in has another configuration than the one before.
    WelcomesForgotten,
    /// So many sets of what servers report are known that those that nobody has are forgotten.
    ParametersForgotten,
    /// A server is lent to a client that does not read.
    LentToCongested,
    /// A server is lent that does not read.
    LentWhileCongested,
    /// A server is asked what it has room for.
    RoomAsked,
    /// Until a server has said what it has room for, there is one connection more at a time.
    RoomAwaited,
    /// A server that is its client's alone is not asked, and the next one is.
    QuestionPassedOn,
    /// Such a one is gone before another has answered, which stays the only one.
    QuestionKept,
    /// The same when its server is in no configuration any more.
    QuestionOfNobody,

    // The queue.
    /// A client comes into the queue before others.
    QueuedAhead,
    /// The head of the queue does not wait any more.
    VoidPlacePassed,
    /// Places of those that do not wait any more are taken out.
    VoidPlacesRemoved,
    /// A client does not wait any more, or is gone.
    QueueLeft,
    /// The same for one that was promised a server.
    PromiseLeft,
    /// The same for one whose server is being prepared.
    PreparedServerLeft,
    /// The same for one whose server would have been its own.
    DedicatedLeft,
    /// The same for one that has its place on a shared server, and has not sent its unit.
    GrantLeft,
    /// A server comes for the one that it was promised to.
    PromiseKept,
    /// A server that was promised to somebody does not come.
    PromiseBroken,
    /// Its login is refused, and would be again.
    PromiseRefused,
    /// A client has waited in the queue for too long.
    WaitOver,
    /// Those that were not told of at once are told of later, together.
    WaitsOverTold,
    /// A client has waited for too long for a server that is opened or prepared for it.
    WaitOverForPrepared,
    /// There was no server at all.
    WaitedForNone,
    /// The same, and its last attempt has failed, but there is no room for another.
    WaitedBehindOthers,
    /// The pool's size was reached.
    WaitedForSize,
    /// A limit that is shared was reached.
    WaitedForShare,
    /// Neither.
    WaitedForAttempt,
    /// A server that was asked for a connection long ago has not answered.
    WaitedForSilent,
    /// A client has waited long enough for the reserve.
    ReserveOpen,

    // Servers that do not come, and limits.
    /// An attempt to connect fails.
    ConnectFailed,
    /// A server does not answer in time.
    ConnectTooSlow,
    /// A connection is made that nobody wants any more.
    ConnectedInVain,
    /// An attempt that nobody wants any more fails.
    FailedInVain,
    /// A server has no room.
    ServerFull,
    /// A login is refused that would be refused again.
    LoginPointless,
    /// So those that wait hear it at once.
    WaiterRefused,
    /// A limit that is shared leaves no room for a connection that was to be made.
    NoRoomToOpen,
    /// Another one did, in which it was counted.
    RoomInPart,
    /// No attempt is made now: one has failed a moment ago.
    AttemptPutOff,
    /// One attempt at a time is made while attempts fail.
    AttemptAlone,
    /// Attempts fail for so long that the delay does not grow any more.
    BackoffAtMost,
    /// A pool without a server finds no room, and asks others at once.
    PoolWithoutRoom,
    /// A pool takes an idle connection of another one.
    IdleTaken,
    /// The same of one that its pool keeps for those who may come.
    NeededIdleTaken,
    /// The largest pool owes its next connection.
    LargestOwes,
    /// All pools that have more owe their next connection.
    AllOwe,
    /// A connection that comes free goes because its pool owes one.
    DebtPaid,
    /// A pool owes one, but a client of its own has waited longer.
    DebtPutOff,
    /// Room goes to another pool.
    RoomForOtherPool,
    /// A pool that has waited longer than the one whose attempt is over makes the next one.
    TurnOfElder,
    /// Room goes to another worker.
    RoomForOtherWorker,
    /// A turn to connect is another worker's, too.
    TurnPassedOn,
    /// A smallest size is not made, because others wait for what a limit leaves.
    SmallestSizeYields,
    /// There is more than a new limit allows, and nothing is idle.
    SurplusOwed,
    /// Or more are there than a limit of several pools allows now.
    SurplusOfShare,
    /// A worker says that it lacks connections.
    WantPosted,
    /// A worker is nudged whose clients wait.
    NudgedWhileWaiting,
    /// A worker gives up an idle connection for another.
    WantMet,
    /// A worker has none to give up now.
    WantUnmet,
    /// No pool of this worker has a part in all of it.
    WantElsewhere,
    /// A server is told to go and waited for, since it counts.
    Dismissed,
    /// One that was promised takes the place of a server that has gone.
    PlaceTaken,
    /// The place of a server that has gone is somebody else's.
    PlaceLost,

    // Servers that come free.
    /// One must not be lent again.
    DoomedComesFree,
    /// One is too old.
    OldComesFree,
    /// One is more than its pool may have.
    SurplusComesFree,
    /// One is idle for too long.
    IdleTooLong,
    /// One is idle and too old.
    IdleTooOld,
    /// What a client that is gone had asked for is over.
    ReplyForNobody,
    /// The same of a server that nobody cleans.
    SettledUncleaned,
    /// A transaction that was left open is rolled back.
    RolledBack,
    /// What was left cannot be removed.
    Unremovable,
    /// The settings of a session are taken back, for its reset query might change them.
    SettingsTakenBack,
    /// There is no reset query.
    NoResetQuery,
    /// A reset query is run.
    Reset,
    /// Settings were refused when the client that asked for them was gone.
    SettingsRefusedForNobody,
    /// What a server is cleaned with is refused, as a reset query may be, or was cancelled.
    CleaningRefused,
    /// The transaction that was made to fail is not needed any more.
    StandInUnused,
    /// A server that was not read is cleaned.
    CleanedUnread,

    // Servers that are lost, by what they did.
    /// It was being connected to, or logged in to.
    LostAtLogin,
    /// It was asked what it has room for.
    LostWhileAsked,
    /// It was idle.
    LostIdle,
    /// It was lent, and its client had not sent anything to it.
    LostBeforeUse,
    /// It worked for a client.
    LostWhileLent,
    /// It was given up in the middle of what it has said.
    LostWhileHeard,
    /// It was being cleaned.
    LostWhileCleaned,
    /// A cancel was waited for.
    LostWhileCancelled,
    /// It was shown the end of our stream, and is given up.
    ForsakenGivenUp,
    /// The same, and it has ended.
    ForsakenEnded,
    /// It was told to go.
    LeavingEnded,
    /// A second server is lost before a unit was sent.
    LostTwice,
    /// A FATAL comes to a client that has sent nothing.
    FatalBeforeWork,
    /// The same, in the place of an answer to what was put in front of its unit.
    FatalBehindInjected,
    /// A FATAL between replies, which the client survives.
    FatalSurvived,
    /// A FATAL in place of a reply, which the client survives.
    FatalInReplySurvived,
    /// A FATAL that is the end of the client, too.
    FatalPassedOn,

    // What their clients lose.
    /// Its unit was not sent.
    LossNotBegun,
    /// Nothing was under way.
    LossOfNothing,
    /// A transaction, and the client does not know yet.
    LossOfTransaction,
    /// A transaction, with a unit that did not commit it.
    LossOfUnitInTransaction,
    /// A unit that may have been carried out.
    LossOfUnit,
    /// A unit that only reads, or was not begun, and is run again.
    LossRunAgain,
    /// A server warns of a crash, and what was sent to it is kept.
    CrashWarned,
    /// A unit that is known not to have been begun.
    LossOfUnitNotBegun,
    /// A unit that only reads, for the second time, or behind the columns of its reply, or others.
    LossOfUnitThatReads,
    /// A unit that may have been carried out, and the session.
    LossOfUnitAndSession,
    /// Its client has sent more, which may rest on what is lost.
    LossAheadOfMore,
    /// The session.
    LossOfSession,
    /// A part of the reply was passed on.
    LossBehindAnswer,
    /// The rest of a message.
    LossOfMessage,
    /// It has heard it from the server.
    LossAlreadyTold,
    /// A batch ends whose Sync is still to come.
    LossInBatch,
    /// A unit ends of whose one message a part is still to come.
    LossInsideUnit,
    /// The client was about to leave.
    LossOfLeaver,
    /// A unit is answered by the news that its transaction was lost.
    LossToldLater,
    /// Nothing is told to a client that rolls back.
    LossNotTold,
    /// The same in the extended protocol.
    LossNotToldInBatch,
    /// A server gets a transaction that has failed.
    StandIn,
    /// It is one that has all of the client's settings.
    LentToFail,
    /// It is one that had to be set to them first.
    PreparedToFail,
    /// A client asks for another transaction like the one that was lost.
    ChainOfLost,

    // Clients that go.
    /// A client leaves when replies are owed.
    LeavesWhileOwed,
    /// It does so before its settings are put back, which waits for a cancel.
    LeavesBeforePutBack,
    /// A client leaves when something is never going to be whole.
    LeavesUnfinished,
    /// A client that has left has got all that it was owed.
    LeaverServed,
    /// The server of one that has left waits for what will not come.
    LeaverLetGo,
    /// A client that is to be told something is inside a message.
    EndedInsideMessage,
    /// It has heard the last words of its server, whose stream has not ended.
    EndedBehindServer,
    /// A client's connection breaks.
    ClientBroken,
    /// A client is gone in the middle of a message of its own.
    AbandonedInsideMessage,
    /// A client is gone in the middle of a batch or a COPY.
    AbandonedUndecided,
    /// It has left what no command removes.
    LeftUnremovable,
    /// It has left a session.
    LeftSession,
    /// It has left state.
    LeftPins,
    /// A server wants COPY data of one that is gone.
    CopyForNobody,
    /// A server skips up to the Sync of one that is gone.
    SkipsForNobody,
    /// A server is forsaken in the middle of what it has said.
    ForsakenWhileRead,
    /// A server that is forsaken says too much.
    ForsakenTalks,
    /// A server is forsaken because it says too much.
    TalkerForsaken,
    /// A server says too much that nobody hears, and owes nothing.
    TalkerOwesNothing,
    /// It is gone when it was shown the end of our stream.
    TalkerGone,

    // Cancels.
    /// Nobody has that key.
    CancelOfNobody,
    /// It is for a client for whom nothing is done.
    CancelOfNothing,
    /// It is for a unit in the queue.
    CancelOfQueued,
    /// It is for a unit that has got its server and was not sent.
    CancelOfUnsent,
    /// That server is kept by what its client has left there.
    CancelOfUnsentPinned,
    /// The same while its server has something of ours to do in front of it.
    CancelOfUnsentBehindOurs,
    /// It is for a unit that waits until its server has done something of ours.
    CancelOfHeld,
    /// It joins one that is under way.
    CancelJoins,
    /// Another one was sent.
    CancelBehindAnother,
    /// It would come too early.
    CancelHeldBack,
    /// What it was held back for is over.
    CancelHeldBackInVain,
    /// What it was held back for has begun.
    CancelReleased,
    /// It is for a unit in front of which a server has something to do.
    CancelOfBeginning,
    /// Within a transaction a cancel waits for a statement of ours that its unit stands behind.
    CancelWaitsForOurs,
    /// When its connection stands, its unit is over.
    CancelTooLate,
    /// Its unit is over before its connection stands.
    CancelDropped,
    /// It is for what a client that is gone has left running.
    CancelOfLeft,
    /// It is for a server that was shown the end of our stream.
    CancelOfForsaken,
    /// Its connection cannot be made.
    CancelConnectFailed,
    /// Its connection breaks.
    CancelBroken,
    /// It was sent, and does not end.
    CancelTimedOut,
    /// It was not sent in time.
    CancelUnsentTimedOut,
    /// A server that is free is not lent while it may still hit.
    CancelAwaited,
    /// Such a server is free when it has ended.
    CancelAwaitedEnds,
    /// A server that is shared takes others again when it has ended.
    CancelOfSharedEnds,
    /// Its server is no more.
    CancelOfLostServer,
    /// Whoever has asked for it is gone.
    CancelRequesterGone,
    /// Its client's input is about to be looked at again.
    CancelBehindWaking,

    // Limits of time.
    /// A client is silent outside a transaction.
    ClientIdle,
    /// A client has been quiet for long, but is busy now.
    ClientIdleButBusy,
    /// A client has been quiet, but not for so long.
    ClientIdleForLess,
    /// A client is silent inside a transaction.
    ClientIdleInTransaction,
    /// Either, or outside of one, in the middle of a message that its server reads.
    ClientIdleInMessage,
    /// The same, but its server does not read.
    StallsUnread,
    /// A transaction takes too long, and a statement of it runs.
    TransactionTooLong,
    /// A transaction takes too long, and nothing of it runs.
    TransactionTooLongIdle,
    /// A statement is not answered.
    ServerHangs,
    /// A server is not brought to its client's settings in time.
    PreparingHangs,
    /// A server is not cleaned in time.
    CleaningHangs,
    /// A server does not see the end of our stream in time.
    ForsakenHangs,
    /// A server that was told to go does not go in time.
    LeavingHangs,
    /// What a client has left running takes too long.
    LeftTooLong,
    /// The same, and it does not heed its cancel.
    LeftHeedsNoCancel,
    /// What a client has left running is not answered.
    LeftHangs,

    // Another configuration, and the end.
    /// A pool has other servers now.
    PoolMoved,
    /// A pool that was made for a client is kept.
    WildPoolKept,
    /// A pool that was made for a client goes.
    WildPoolGoes,
    /// A pool has more than it may have now, and some of it is idle.
    SurplusClosed,
    /// An idle server is one of another configuration.
    IdleReplaced,
    /// One that is opened is.
    OpeningReplaced,
    /// One that is busy is.
    BusyReplaced,
    /// The one that listens is.
    ListenerReplaced,
    /// A client that is there has another limit of silence.
    SilenceRenewed,
    /// A client is asked to leave.
    Drained,
    /// A client is asked to leave when its transaction is over.
    DrainedBehindUnit,
    /// That unit has shared a server.
    DrainedBehindShared,
    /// It waits for a server, or shares one.
    DrainedUnderWay,
    /// A client is told that this is the end.
    ShutDown,

    // Bytes.
    /// A client does not read what is written to it.
    ClientCongested,
    /// The same of one that is gone.
    CongestedLeft,
    /// A server does not.
    ServerCongested,
    /// The same of one that is nobody's alone.
    CongestedUnlent,
    /// There is no room for all that is written.
    PartialWrite,
    /// Output that is not out yet is moved up in its buffer.
    OutputMovedUp,
    /// Much output is written for many connections together.
    WrittenTogether,
    /// One of them has no room.
    TogetherWithoutRoom,
    /// One of them is broken.
    TogetherInVain,
    /// Input that waits fills its buffer.
    InputFull,
    /// The same, and some of it is consumed.
    InputFullConsumed,
    /// A read fails.
    ReadFailed,
    /// A write to a client fails.
    WriteToClientFailed,
    /// Something is written to a connection that is broken.
    WrittenToBroken,
    /// A write to a server fails.
    WriteToServerFailed,
    /// A client that is not read has reset its connection.
    ResetUnread,
    /// The driver has stood still: its first tick only sees that.
    TickLate,
    /// A peer has to read its last words.
    Lingers,
    /// A connection is broken when the last words are said there.
    LastWordsUnheard,
    /// It has read them.
    LingererReadAll,
    /// The connection of one that was to read on is broken.
    LingererBroken,
    /// It has read some of them.
    LingererReadSome,
    /// It does not read them.
    LingererGivenUp,

    // Servers that several clients use at a time.
    /// A unit is sent to a server that others use.
    UnitShares,
    /// The same, though more servers are to be shared than are.
    BehindForNow,
    /// What its names stand for is new since it was read, so that it is read again.
    UnitReadAnew,
    /// Nobody is there to share a server with: a unit gets one alone.
    UnitLone,
    /// What a name means depends on the units before: the unit is not shared.
    UnsharedForName,
    /// It is too long to be shared.
    UnsharedForLength,
    /// A statement was prepared under other settings: the unit is not shared.
    UnsharedForSettings,
    /// A free server is set to be shared.
    ServerHeated,
    /// It is one for which others wait, behind those who share it.
    HeatedAheadOfOthers,
    /// One that was started as somebody asked is not shared.
    BornNotShared,
    /// It has other settings, and there is no other.
    AnyHeated,
    /// Nobody takes a place there.
    HeatedInVain,
    /// It is shared, and somebody waits for a server alone behind those who do.
    WarmedAheadOfOthers,
    /// What comes free is for others, and those who would share wait for one alone.
    SharersMakeWay,
    /// What is free is for those who need one alone now.
    IdleOfferedToAlone,
    /// No server is fit for a unit, and it goes to any that can take it.
    SharedAnyhow,
    /// One that others will miss is set anew for clients with other settings, who have none.
    SharedSetAnew,
    /// One is left to clients with the settings that it has, since who waits has one, too.
    LeftToItsLike,
    /// It refuses what clients have set who would share it.
    HeatingRefused,
    /// It is set to what others have set behind what it has.
    SetAnewBehind,
    /// The same, until there is one more that is shared.
    SetAnewForNow,
    /// It was sent units before it has refused to be set for them.
    ForeseenInVain,
    /// The servers that are shared are set to what other clients have set.
    NoneHotForSettings,
    /// A unit waits for a place on a server that is shared.
    PlaceAwaited,
    /// It writes, and none is shared by those who do.
    WriteLacksHot,
    /// A statement is made on a shared server for a unit that waits for it.
    StatementMadeAhead,
    /// It is made already, and what its rows are like is not known.
    NeedUnderWay,
    /// It is not there after all, or its rows are others.
    MadeAheadInVain,
    /// Those who have waited for that need servers alone, which are made.
    RefilledForAlone,
    /// It would take the place of one that is needed, and waits.
    MakingPutOff,
    /// A shared server is kept for somebody who needs one alone.
    SharedReserved,
    /// Another one is to be shared in the place of one that is kept.
    HotAwaited,
    /// The same for what is to go: it has lived for long enough, or there are too many.
    SharedTooOld,
    /// A unit that shares a server takes too long.
    SharedOverran,
    /// The reply to a unit that shares a server is too long to be kept.
    SharedReplyTooLong,
    /// All replies that are kept are too long together.
    NoRoomForReply,
    /// A unit is sent behind another under one Sync.
    Joined,
    /// A query is sent as a batch for that.
    QueryConverted,
    /// That Sync is sent when the turn is over.
    JoinedForTurn,
    /// That Sync is sent before: the server has room for the bytes in front of it.
    JoinedForRoom,
    /// A unit fails, and so do others under the same Sync.
    Derailed,
    /// A unit is run again, alone.
    RunAlone,
    /// A client goes whose unit is on a shared server.
    SharerGone,
    /// A shared server is lost.
    LostWhileShared,
    /// It says FATAL first.
    SharedSaysFarewell,
    /// The same when nothing is owed.
    SharedFarewellUnasked,
    /// It had a place for a unit that was not sent.
    GrantLost,
    /// A unit that has its place on a shared server needs one alone now.
    GrantUnused,
    /// Who waits to share may have another server, which is free.
    GrantedFree,
    /// A unit that was on it can be run again.
    SharedRunAgain,
    /// Whether such a unit was carried out is not known.
    SharedOutcomeUnknown,
    /// A shared server does not answer to statements of ours.
    SharedInVain,
    /// A shared server does not end a statement.
    SharedHangs,

    // The console.
    /// A client of the console sends more while a command of its is carried out.
    ConsoleAwaited,
    /// It does not read its answers.
    ConsoleCongested,
    /// It has read on.
    ConsoleReadOn,
    /// Its stream ends in the middle of a message.
    ConsoleCutOff,
    /// It speaks the extended protocol.
    ConsoleBatchRefused,
    /// And goes on to, up to the Sync.
    ConsoleSkipped,
    /// It calls a function.
    ConsoleCallRefused,
    /// A command is too long to be one.
    ConsoleTooLong,
    /// A command is carried out whose client has left.
    ConsoleLeft,
    /// Clients are asked to leave, and the console's stay to look at the others.
    ConsoleStays,

    // Rarer than the others: some have seeds of their own (crates/sim/tests/seeds.rs).
    /// The listener, past the mark, says something before the client's own server is past it.
    HeardAheadOfServer,
    /// Who leaves, or loses its server, hears the ReadyForQuery that was delayed.
    ReadySaidAtOnce,
    /// A listener is closed, which is the only server of its pool that nobody keeps, to make room.
    ListenerMakesRoom,
    /// A cancel is to hit a shared unit beside others.
    CancelledBesideOthers,
    /// The others are answered, and it goes out.
    CancelledAsLast,
    /// A unit that may not share any more is said again.
    BannedSaidAgain,
    /// A unit that shared took too long, or its reply was, and was cancelled too.
    OverranCancelled,
    /// Behind those of the queue who do not take a server stand some who share it.
    WarmsBehindPassed,
    /// One is given up that has nothing to do.
    GivenUpFree,
    /// One does not say what it has room for.
    RoomNotTold,
    /// A DEALLOCATE ALL was not carried out.
    AllNamesStay,
    /// What a server reports is told a client that has it alone.
    ReportsTold,
    /// Servers are shared otherwise for a while, to see whether that is better.
    SharedOtherwise,
    /// So much of a client was kept that it was not read, and is done with.
    RetainedRead,
    /// A shutdown ends a client whose statement may be committed all the same.
    GoesOnBehindShutDown,
    /// A client between transactions goes with its pool.
    ClosedWithPool,

    not_simulated:
    /// A statement of several clients is used by one that has changed how literals are read.
    UsedUnderOthers,
    /// The end of a unit does not wait for the listener: its client leaves.
    ReadyNotDelayed,
    /// `transaction_timeout` is over while something of ours is not answered.
    TransactionTooLongAside,
    /// What the unit of a cancel waited for is over, and the unit was not sent yet.
    CancelAwaitsUnit,
    /// The reply to a unit that shares a server is too long to be kept, and cannot be asked for
    /// again: the schema has changed.
    TooLongInDoubt,
    /// A server refuses to be set for a unit that it has, which is not known any more to only read.
    MissetInDoubt,
    /// Units under one Sync have failed, and it is not known of one any more that it only reads.
    DerailedInDoubt,
    /// A unit comes when those to which it would be joined have failed already.
    NotJoinedBehindError,
    /// A server is lost that has something to do in front of a unit, for which a cancel has come.
    LossOfCancelledAhead,
    /// A client was told of two kinds of rows of one statement: the unit is not shared.
    UnsharedForTold,
    /// A client does not read a reply that was held for it.
    ReplyPilesUp,
    /// A unit is answered by us once its client has read what was written to it.
    RefusalUnread,
    /// A unit could be run again whose server was lost, but its client has asked for its end.
    LossOfCancelled,
    /// A shared server says what it was not asked while it has a client's unit.
    Misbehaved,
    /// Who says why a shared server ends is not PostgreSQL.
    FarewellOfAnother,
    /// A shared server is lost with what could be run again, but its client has asked for its end.
    SharedLostCancelled,
    /// A unit was about to be over whose shared server is lost: an error has undone it.
    SharedLostUndone,
    /// A server that was found for a unit would read it in another encoding.
    UnsharedForEncoding,
    /// A client hears so much of what PostgreSQL does that it shares no server.
    UnsharedForDebugging,
    /// What takes the brake off a server was ended by it.
    SettingsBraked,
    /// A promised server takes another place than that of the one that has gone: a reload has moved
    /// its pool.
    PlaceLeft,

    // Clients on their way in and out.
    /// A request for a cancel has a length that none has.
    CancelMalformed,
    /// A client leaves while the end of its last unit waits for what the listener has to say.
    LeavesBeforeReady,
    /// A client that was given to another worker has not arrived.
    LostOnTheWay,
    /// What a client of replication asks for at its login goes to its server as it is.
    SwitchesPassedOn,
    /// The replication of a whole cluster is asked for.
    ClusterReplicated,
    /// All pools of that user are another worker's.
    ClusterElsewhere,
    /// A pool is gone before a login for it is over.
    PoolGoneInLogin,
    /// Another configuration has another user of the console.
    ConsoleClosed,
    /// A client of the console was said so much that its next message waits a moment.
    ConsoleSaysMuch,
    /// So many are asked to leave that they are not all asked at once.
    FarewellsSpread,
    /// Who has ended its stream is waited for longer than others, until it has read.
    LingererWaitedFor,
    /// The kernel knows that the other side has vanished.
    SilentGivenUp,
    /// A client keeps its server, and does nothing with it.
    PinIdle,

    // Clients that are to prove who they are: everybody is trusted in simulations.
    /// What comes for a proof is no message.
    ProofMalformed,
    /// It is another message.
    NoProof,
    /// It is too long.
    ProofTooLong,
    /// It is no password.
    PasswordMalformed,
    /// It does not choose a SASL mechanism.
    SaslMalformed,
    /// It chooses one that was not offered.
    MechanismUnknown,
    /// SCRAM cannot begin with it.
    ScramNotBegun,
    /// SCRAM cannot end with it.
    ScramNotEnded,
    /// SCRAM shows that the password is another one.
    ScramProofWrong,
    /// A client that there is proves nothing.
    ProofWrong,
    /// One that there is not does all that it was asked for.
    ProofOfNobody,

    // The worker, and what the kernel does not do for it.
    /// A worker that is to begin cannot let clients in where they are expected.
    DoorlessAtStart,
    /// A listener is none that can be waited for.
    DoorNotOpened,
    /// A listener does not take an option.
    DoorNotConfigured,
    /// Clients are to be let in elsewhere, but nobody is any more.
    DoorsStayClosed,
    /// A client cannot be accepted.
    AcceptFailed,
    /// Nor when its door is closed: it is tried again.
    AcceptFailedAtClose,
    /// It was tried for long enough.
    ClosingGivenUp,
    /// A client cannot be given to another worker.
    NotGiven,
    /// A client cannot be taken from another worker.
    NotTaken,
    /// Nobody waits any more for an attempt to connect.
    AttemptGivenUp,
    /// The queue of a server's unix socket is full.
    ServerQueueFull,
    /// The options of connections are others now, and peers are watched anew.
    WatchRenewed,
    /// The kernel cannot be asked about peers.
    NoSockDiag,
    /// Whoever has asked a worker something has left.
    AskerLeft,
    /// Nobody hears what a worker tells.
    NewsUnheard,
    /// A connection that is to be closed sends more and more.
    DiscardsGivenUp,
    /// It has sent as much as is thrown away at once.
    MuchDiscarded,
    /// What it has sent is thrown away.
    InputDiscarded,
    /// The kernel has been told already why a connection is broken.
    BrokenUnsaid,
    /// A stream cannot be ended: there is no connection any more.
    HalfCloseInVain,
    /// It is asked for the silence of a peer that is gone.
    SilenceOfGone,
    /// The kernel does not say how long a peer has been silent.
    SilenceUntold,
    /// The kernel says that a listener that there is does not exist.
    ListenerUnknown,
    /// It answers the question before.
    AnswerToBefore,
    /// It does not know a connection.
    ConnectionUnknown,
    /// It does not understand a question.
    QuestionRefused,
    /// It tells of the listener in the place of a connection.
    AnswerOfListener,
    /// It does not take output for several connections in one call.
    NoIoSubmit,
    /// It did so until now.
    IoSubmitForbidden,

    // Servers that are not as they should be.
    /// One says something else than a login.
    LoginBroken,
    /// A message of its is longer than any of a login.
    LoginMessageTooLong,
    /// It offers no SASL mechanism that we speak.
    MechanismMissing,
    /// It asks for a proof in a way that we do not speak.
    MethodNotSpoken,
    /// It asks again, or lets us in before it is through with what it has begun.
    ChallengedOutOfOrder,
    /// Its SCRAM challenge is none, or not for us.
    ChallengeUnfit,
    /// It does not show that it knows the password, too.
    ServerUnproved,
    /// It keeps another secret than it did when the keys were made that we have.
    LoginKeysOld,
    /// A start that is to be slow has failed.
    SlowBirth,
    /// One has said what nobody has asked for.
    Contained,
    /// The same when its client has sent it nothing.
    ContainedBeforeUse,
    /// One comes free in the middle of a message, or of a transaction.
    AstrayComesFree,
    /// ROLLBACK does not end a transaction.
    RollbackInVain,
    /// One does not begin a transaction that is to have failed.
    StandInFails,
    /// One has no key to cancel by.
    CancelWithoutKey,
    /// COPY goes both ways.
    CopiesBothWays,
    /// The client has ended its way before.
    CopyBothEndedAhead,

    // What another worker does between two steps: simulated ones take turns.
    /// It takes the room for a connection that somebody in the queue was to get.
    RoomOfQueueTaken,
    /// It takes the room for one that was to be asked whether it takes a client's settings.
    RoomForAnotherTaken,
    /// It is told what a server has room for.
    RoomToldMeanwhile,

    // Replies.
    /// A Sync that was sent with the data of a COPY is answered when more has been sent.
    SyncInDoubtAhead,
    /// So much is owed that a message has to wait.
    RepliesFull,
    /// So many units are under way that the next has to wait.
    UnitsFull,

    // Names, statements and what their rows are like.
    /// A client has so many names that what it prepares is not shared any more.
    TooManyNames,
    /// A pool knows so many statements that others are not shared.
    TooManyStatements,
    /// What a statement's rows are like is too long to be kept.
    RowsUnknown,
    /// A statement that could not be removed is gone all the same.
    NotRemovedButGone,
    /// What was before a Close that was not done is taken back already.
    TakenBackBefore,
    /// The same of the unnamed statement.
    UnnamedRowsUnknown,
    /// A client that was not told of rows when it prepared is held to what its server knows.
    ToldByAnother,
    /// Or to what is said when the statement is made again.
    ToldByMaking,
    /// A name in a message is longer than what is waited for in whole.
    NamesTooLong,
    /// What a client's own name stands for asks for a last value that is not its own.
    OwnNameRefused,
    /// A DEALLOCATE was not carried out.
    NameStays,
    /// A DEALLOCATE of which no reply tells.
    NamesGoneUnseen,
    /// A text may name what is prepared for all clients.
    OursNamed,

    // Settings, sequences, and what is left on a server.
    /// A server is cleaned of nothing but what its client has only named.
    CleanedOfUnseen,
    /// There is nothing to put back for a client that leaves, which has waited for a cancel.
    LeaverBehindCancel,
    /// What a client has asked for at its login cannot be put back.
    PutBackRefused,
    /// A server's settings are too long to be read.
    SettingsUnreadable,
    /// So many settings were taken that what servers reported to the first is forgotten.
    WelcomeForgotten,
    /// So many settings were refused lately that the first is forgotten.
    RefusalForgotten,
    /// So many sets of settings are known that those that nobody has are forgotten.
    SettingsForgotten,
    /// What no server takes may be taken back by the next unit.
    CureTried,
    /// Who says what with sequences is let be.
    SequencesLetBe,
    /// A client that has advanced a sequence keeps its server.
    SequencesKept,
    /// A client asks for the last value of a sequence, which its server did not forget.
    StuckTold,
    /// A batch is refused in which a server was to forget sequences.
    StuckInBatch,
    /// What is known of a server's sequences may not be all.
    SequencesInDoubt,

    // Catalogues.
    /// A client is gone once its server has said what there is in its catalogue.
    NamesToldToLeaver,
    /// A message waits until it is known which names matter.
    HeldForCatalogue,
    /// A server that is to read its catalogue does not take its settings back.
    ReadingRefused,
    /// There is more in a catalogue than is kept.
    CatalogueTooLong,
    /// Names that were not known before advance sequences.
    NewsOfSequences,

    // Clients that listen.
    /// A cancel may hit still what would tell a server to listen in a transaction.
    ListenAwaitsCancel,
    /// A server has nothing to listen to.
    ListenerRefused,
    /// The same, and some hear nothing meanwhile: another one is asked, after a while.
    ListenerTriedAgain,
    /// A server that listens unseen notifies its client of what the listener does, too.
    HeardTwice,
    /// Something is notified on a server that is free.
    NotifiedWhileFree,
    /// A server notifies its client, which is still to be told what was notified before.
    NotifiedBehindPending,
    /// What a client is notified of waits for the end of its unit, which waits for the listener.
    PendingBehindReady,
    /// A client is notified of more than is kept for it.
    NotifiedTooMuch,
    /// A client is told by its server of more than is kept of that, too.
    ToldTooMuch,
    /// A client has ended to listen, and committed that, within what its server was told to take
    /// over.
    UnlistenCommitted,
    /// It was notified meanwhile on a channel on which it listens no more.
    PendingSifted,
    /// It is not asked which ones these are, since it has other state that keeps its server.
    NothingSifted,
    /// A client has stopped listening before its server could be asked where it stands.
    ListensNoMore,
    /// A client's server could not be told to listen.
    ToServerInVain,
    /// A transaction goes back, perhaps behind an UNLISTEN.
    UnlistenInDoubt,
    /// The same, and the client's transaction has failed with it.
    LostUnshown,
    /// A client's server could not be told not to listen any more.
    StillListens,
    /// It is in doubt whether a client listens, and there is no listener to tell.
    DoubtUnheard,
    /// It was in doubt whether a client listens, and it does not.
    DoubtEndsListening,

    // Shared servers.
    /// So many statements are known that some are forgotten.
    StandingsForgotten,
    /// All of them are banned.
    BansForgotten,
    /// A server says in another language that a unit took too long.
    OverranByTime,
    /// A free server is shared before a unit stands behind another.
    HeatedInFront,
    /// What is put in front of a unit on a shared server fails.
    SharedOwnFailed,
    /// Of a reply on a shared server something between two parts goes elsewhere.
    HeldInParts,
    /// Those who wait for a place wait for commits: a unit that reads does not.
    CommitsPassed,
    /// The same of one that has waited, too.
    CommitsPassedInTurn,
}

const COUNT: usize = Mark::ALL.len();

thread_local! {
    /// How often each was taken on this thread since [`Marks::take`] was called last.
    static TAKEN: [Cell<u64>; COUNT] = const { [const { Cell::new(0) }; COUNT] };
}

impl Mark {
    /// This path is taken.
    #[inline]
    pub fn hit(self) {
        self.hit_if(true);
    }

    /// This path is taken, if that is so.
    #[inline]
    pub fn hit_if(self, taken: bool) {
        if cfg!(debug_assertions) && taken {
            TAKEN.with(|times| times[self as usize].set(times[self as usize].get() + 1));
        }
    }
}

/// How often each path was taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Marks([u64; COUNT]);

impl Marks {
    /// What this thread has counted since it was asked last. Nothing, where nothing is counted.
    pub fn take() -> Self {
        TAKEN.with(|times| Self(std::array::from_fn(|at| times[at].take())))
    }

    /// How often this one was.
    pub fn times(&self, mark: Mark) -> u64 {
        self.0[mark as usize]
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum += more;
        }
    }
}

impl Default for Marks {
    fn default() -> Self {
        Self([0; COUNT])
    }
}

/// All that were taken.
impl fmt::Debug for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = Mark::ALL.iter().filter(|mark| self.times(**mark) > 0);
        f.debug_map().entries(taken.map(|mark| (mark, self.times(*mark)))).finish()
    }
}

#[cfg(test)]
pub(crate) mod tests;
