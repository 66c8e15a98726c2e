use proptest::prelude::*;

use super::*;

const PROOF: &str = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";

fn client_first(message: &str) -> Result<ClientFirst<'_>, MessageError> {
    ClientFirst::parse(message.as_bytes())
}

fn server_first(message: &str) -> Result<ServerFirst<'_>, MessageError> {
    ServerFirst::parse(message.as_bytes())
}

fn client_final(message: &str) -> Result<ClientFinal<'_>, MessageError> {
    ClientFinal::parse(message.as_bytes())
}

fn server_final(message: &str) -> Result<ServerFinal<'_>, MessageError> {
    ServerFinal::parse(message.as_bytes())
}

#[test]
fn client_first_is_read() {
    for (message, binding, nonce, bare) in [
        ("n,,n=,r=abc", ChannelBinding::Unsupported, "abc", "n=,r=abc"),
        ("y,,n=,r=abc", ChannelBinding::NotOffered, "abc", "n=,r=abc"),
        ("n,,n=user=2C,r=a=b", ChannelBinding::Unsupported, "a=b", "n=user=2C,r=a=b"),
        ("n,,n=*,r=!~,x=,Y=1,m=2", ChannelBinding::Unsupported, "!~", "n=*,r=!~,x=,Y=1,m=2"),
    ] {
        let read = client_first(message).unwrap();
        assert_eq!((read.binding, read.nonce, read.bare), (binding, nonce, bare.as_bytes()));
    }
    // A user name in another encoding than UTF-8: it is not looked at.
    assert!(ClientFirst::parse(b"n,,n=caf\xe9,r=abc").is_ok());
}

#[test]
fn client_first_of_any_other_shape_is_refused() {
    for (message, error) in [
        ("", MessageError::Empty),
        ("n,,n=,r=a\0", MessageError::NulByte),
        ("n", MessageError::Gs2Header),
        ("n,", MessageError::Gs2Header),
        (",,n=,r=abc", MessageError::Gs2Header),
        ("nn,,n=,r=abc", MessageError::Gs2Header),
        ("x,,n=,r=abc", MessageError::Gs2Header),
        ("N,,n=,r=abc", MessageError::Gs2Header),
        ("n,x,n=,r=abc", MessageError::Gs2Header),
        ("n=,r=abc", MessageError::Gs2Header),
        ("p=tls-server-end-point,,n=,r=abc", MessageError::ChannelBinding),
        ("p,,n=,r=abc", MessageError::ChannelBinding),
        ("n,a=root,n=,r=abc", MessageError::AuthorizationIdentity),
        ("n,,m=x,n=,r=abc", MessageError::MandatoryExtension),
        ("n,,", MessageError::Attribute { expected: 'n' }),
        ("n,,r=abc", MessageError::Attribute { expected: 'n' }),
        ("n,,r=abc,n=", MessageError::Attribute { expected: 'n' }),
        ("n,,n,r=abc", MessageError::Attribute { expected: 'n' }),
        ("n,,n=", MessageError::Attribute { expected: 'r' }),
        ("n,,n=,", MessageError::Attribute { expected: 'r' }),
        ("n,,n=,n=,r=abc", MessageError::Attribute { expected: 'r' }),
        ("n,,n=a,b,r=abc", MessageError::Attribute { expected: 'r' }),
        ("n,,n=,r", MessageError::Attribute { expected: 'r' }),
        ("n,,n=,R=abc", MessageError::Attribute { expected: 'r' }),
        ("n,,n=,r=", MessageError::Nonce),
        ("n,,n=,r=a b", MessageError::Nonce),
        ("n,,n=,r=a\u{7f}", MessageError::Nonce),
        ("n,,n=,r=caf\u{e9}", MessageError::Nonce),
        ("n,,n=,r=abc,", MessageError::Extension),
        ("n,,n=,r=abc,x", MessageError::Extension),
        ("n,,n=,r=abc,1=x", MessageError::Extension),
        ("n,,n=,r=abc,xx=1", MessageError::Extension),
        ("n,,n=,r=abc,x=1,,y=1", MessageError::Extension),
    ] {
        assert_eq!(client_first(message).err(), Some(error), "{message:?}");
    }
}

#[test]
fn server_first_is_read() {
    let read = server_first("r=abcdef,s=c2FsdA==,i=4096").unwrap();
    assert_eq!((read.nonce, &*read.salt, read.iterations.count()), ("abcdef", &b"salt"[..], 4096));
    let read = server_first("r=a=!,s=,i=2147483647,x=1").unwrap();
    assert_eq!((read.nonce, &*read.salt, read.iterations.count()), ("a=!", &b""[..], 2147483647));
}

#[test]
fn server_first_of_any_other_shape_is_refused() {
    for (message, error) in [
        ("", MessageError::Empty),
        ("r=a,s=c2FsdA==,i=1\0", MessageError::NulByte),
        ("m=x,r=a,s=c2FsdA==,i=1", MessageError::MandatoryExtension),
        (",r=a,s=c2FsdA==,i=1", MessageError::Attribute { expected: 'r' }),
        ("s=c2FsdA==,r=a,i=1", MessageError::Attribute { expected: 'r' }),
        ("e=other-error", MessageError::Attribute { expected: 'r' }),
        ("r=", MessageError::Nonce),
        ("r=\u{e9},s=c2FsdA==,i=1", MessageError::Nonce),
        ("r=a", MessageError::Attribute { expected: 's' }),
        ("r=a,i=1,s=c2FsdA==", MessageError::Attribute { expected: 's' }),
        ("r=a,s=c2FsdA,i=1", MessageError::Base64 { attribute: 's' }),
        ("r=a,s=c2Fsd===,i=1", MessageError::Base64 { attribute: 's' }),
        ("r=a,s=c2 sdA==,i=1", MessageError::Base64 { attribute: 's' }),
        ("r=a,s=c2FsdA==", MessageError::Attribute { expected: 'i' }),
        ("r=a,s=c2FsdA==,i", MessageError::Attribute { expected: 'i' }),
        ("r=a,s=c2FsdA==,i=", MessageError::Iterations),
        ("r=a,s=c2FsdA==,i=0", MessageError::Iterations),
        ("r=a,s=c2FsdA==,i=-1", MessageError::Iterations),
        ("r=a,s=c2FsdA==,i=0x10", MessageError::Iterations),
        ("r=a,s=c2FsdA==,i=4096 ", MessageError::Iterations),
        ("r=a,s=c2FsdA==,i=4294967297", MessageError::Iterations),
        ("r=a,s=c2FsdA==,i=1,", MessageError::Extension),
        ("r=a,s=c2FsdA==,i=1,garbage", MessageError::Extension),
    ] {
        assert_eq!(server_first(message).err(), Some(error), "{message:?}");
    }
}

#[test]
fn client_final_is_read() {
    for without_proof in ["c=biws,r=abc", "c=,r=", "c=biws,r=abc,x=1,y="] {
        let message = format!("{without_proof},p={PROOF}");
        let read = client_final(&message).unwrap();
        assert_eq!(read.without_proof, without_proof.as_bytes());
        assert_eq!(read.proof.encode(), PROOF);
    }
    let message = format!("c=biws,r=abc,p={PROOF}");
    let read = client_final(&message).unwrap();
    assert_eq!((read.channel_binding, read.nonce), (&b"biws"[..], &b"abc"[..]));
}

#[test]
fn client_final_of_any_other_shape_is_refused() {
    for (message, error) in [
        ("", MessageError::Empty),
        ("c=biws,r=abc,p=P\0", MessageError::NulByte),
        ("r=abc,c=biws,p=P", MessageError::Attribute { expected: 'c' }),
        ("p=P", MessageError::Attribute { expected: 'c' }),
        ("c=biws", MessageError::Attribute { expected: 'r' }),
        ("c=biws,p=P", MessageError::Attribute { expected: 'r' }),
        ("c=biws,r=abc", MessageError::Attribute { expected: 'p' }),
        ("c=biws,r=abc,", MessageError::Attribute { expected: 'p' }),
        ("c=biws,r=abc,x=1", MessageError::Attribute { expected: 'p' }),
        ("c=biws,r=abc,p=P,x=1", MessageError::Attribute { expected: 'p' }),
        ("c=biws,r=abc,p=P,", MessageError::Attribute { expected: 'p' }),
        ("c=biws,r=abc,,p=P", MessageError::Extension),
        ("c=biws,r=abc,9=1,p=P", MessageError::Extension),
        ("c=biws,r=abc,p=", MessageError::Base64 { attribute: 'p' }),
        ("c=biws,r=abc,p=P ", MessageError::Base64 { attribute: 'p' }),
        ("c=biws,r=abc,p=PP", MessageError::Base64 { attribute: 'p' }),
        (
            "c=biws,r=abc,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndQ==",
            MessageError::Base64 { attribute: 'p' },
        ),
        (
            "c=biws,r=abc,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQA",
            MessageError::Base64 { attribute: 'p' },
        ),
    ] {
        let message = message.replace('P', PROOF);
        assert_eq!(client_final(&message).err(), Some(error), "{message:?}");
    }
}

#[test]
fn server_final_is_read() {
    for message in [format!("v={PROOF}"), format!("v={PROOF},x=1")] {
        let ServerFinal::Signature(signature) = server_final(&message).unwrap() else {
            panic!("{message}");
        };
        assert_eq!(signature.encode(), PROOF);
    }
    let refused = server_final("e=invalid-proof");
    assert!(matches!(refused, Ok(ServerFinal::Refused("invalid-proof"))));
}

#[test]
fn server_final_of_any_other_shape_is_refused() {
    for (message, error) in [
        ("", MessageError::Empty),
        ("e=x\0", MessageError::NulByte),
        ("v", MessageError::Attribute { expected: 'v' }),
        ("x=1,v=P", MessageError::Attribute { expected: 'v' }),
        ("v=", MessageError::Base64 { attribute: 'v' }),
        ("v=AAAA", MessageError::Base64 { attribute: 'v' }),
        ("v=P,", MessageError::Extension),
        ("v=P,garbage", MessageError::Extension),
        ("e=", MessageError::Reason),
        ("e=two words", MessageError::Reason),
        ("e=\u{1b}[31m", MessageError::Reason),
        ("e=caf\u{e9}", MessageError::Reason),
    ] {
        let message = message.replace('P', PROOF);
        assert_eq!(server_final(&message).err(), Some(error), "{message:?}");
    }
}

#[test]
fn a_client_message_has_a_longest_length() {
    let with_len = |len: usize| {
        let start = "n,,n=,r=abc,x=";
        format!("{start}{}", "x".repeat(len - start.len()))
    };
    assert!(client_first(&with_len(MAX_CLIENT_MESSAGE_LEN)).is_ok());
    let too_long = with_len(MAX_CLIENT_MESSAGE_LEN + 1);
    assert_eq!(client_first(&too_long).err(), Some(MessageError::TooLong));
    assert_eq!(client_final(&too_long).err(), Some(MessageError::TooLong));
}

#[test]
fn a_server_message_has_a_longest_length() {
    let with_len = |len: usize| {
        let start = "r=a,s=c2FsdA==,i=1,x=";
        format!("{start}{}", "x".repeat(len - start.len()))
    };
    assert!(server_first(&with_len(MAX_SERVER_MESSAGE_LEN)).is_ok());
    let too_long = with_len(MAX_SERVER_MESSAGE_LEN + 1);
    assert_eq!(server_first(&too_long).err(), Some(MessageError::TooLong));
    assert_eq!(server_final(&too_long).err(), Some(MessageError::TooLong));
}

#[test]
fn a_nonce_has_a_longest_length() {
    let with_len = |len: usize| format!("n,,n=,r={}", "x".repeat(len));
    assert!(client_first(&with_len(MAX_CLIENT_NONCE_LEN)).is_ok());
    let too_long = with_len(MAX_CLIENT_NONCE_LEN + 1);
    assert_eq!(client_first(&too_long).err(), Some(MessageError::NonceTooLong));
}

#[test]
fn the_longest_nonce_leaves_room_for_client_final() {
    let nonce = "x".repeat(MAX_CLIENT_NONCE_LEN) + Nonce::new([0; 18]).as_str();
    let without_proof = ClientFinal::encode_without_proof(ChannelBinding::Unsupported, &nonce);
    let proof = Key::decode(PROOF.as_bytes()).unwrap();
    assert!(client_final(&ClientFinal::encode(&without_proof, &proof)).is_ok());
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(message in proptest::collection::vec(any::<u8>(), 0..2100)) {
        let _ = ClientFirst::parse(&message);
        let _ = ServerFirst::parse(&message);
        let _ = ClientFinal::parse(&message);
        let _ = ServerFinal::parse(&message);
    }

    #[test]
    fn nor_does_anything_that_looks_like_a_message(
        message in "([nymavercspix]?[=,a]?(AAAA|[0-9]{1,11}|biws)?=?,?){0,12}",
    ) {
        let _ = client_first(&message);
        let _ = server_first(&message);
        let _ = client_final(&message);
        let _ = server_final(&message);
    }

    #[test]
    fn what_is_read_is_printable_and_bounded(
        nonce in "[ -~\u{e9}]{0,600}", user in "[^,\0]{0,30}",
    ) {
        if let Ok(read) = client_first(&format!("n,,n={user},r={nonce}")) {
            prop_assert!((1..=MAX_CLIENT_NONCE_LEN).contains(&read.nonce.len()));
            prop_assert!(read.nonce.bytes().all(|byte| byte.is_ascii_graphic() && byte != b','));
        }
    }

    #[test]
    fn what_is_written_is_read_back(
        random in any::<[u8; 18]>(),
        salt in proptest::collection::vec(any::<u8>(), 0..64),
        count in 1..=i32::MAX.unsigned_abs(),
        key in any::<[u8; 32]>(),
    ) {
        let nonce = Nonce::new(random);
        for binding in [ChannelBinding::Unsupported, ChannelBinding::NotOffered] {
            let bare = ClientFirst::encode_bare(&nonce);
            let message = ClientFirst::encode(binding, &bare);
            let read = client_first(&message).unwrap();
            prop_assert_eq!(read.binding, binding);
            prop_assert_eq!((read.nonce, read.bare), (nonce.as_str(), bare.as_bytes()));

            let proof = Key::decode(BASE64_STANDARD.encode(key).as_bytes()).unwrap();
            let without_proof = ClientFinal::encode_without_proof(binding, nonce.as_str());
            let message = ClientFinal::encode(&without_proof, &proof);
            let read = client_final(&message).unwrap();
            prop_assert!(read.proof == proof);
            prop_assert_eq!(read.channel_binding, binding.attribute().into_bytes());
            prop_assert_eq!(read.nonce, nonce.as_str().as_bytes());
            prop_assert_eq!(read.without_proof, without_proof.as_bytes());
        }

        let keys = ScramKeys::from_parts(Iterations::new(count).unwrap(), &salt, key, key);
        let message = ServerFirst::encode(nonce.as_str(), &keys);
        let read = server_first(&message).unwrap();
        prop_assert_eq!((read.nonce, read.salt), (nonce.as_str(), salt));
        prop_assert_eq!(read.iterations, keys.iterations());
    }
}
