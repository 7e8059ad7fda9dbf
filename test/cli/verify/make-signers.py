"""Makes signers.json: requests as other tools sign them, so that `oncehook verify --guess` is not tried on its own signatures.

Run it in this folder: python3 make-signers.py > signers.json
It needs openssl and perl beside Python, and gives the same output each time.
"""
import base64
import hmac
import json
import subprocess

SECRET = "a-webhook-signing-secret-of-32-b"
KEY = bytes(range(100, 132))
URL_KEY = bytes(range(224, 256))
BODY = '{"eventType":"message.sent","data":{"text":"Gr\u00fc\u00dfe \U0001f44b"}}'
MS = "1760000001234"
SECONDS = "1760000001"


def openssl(text, *args):
    command = ["openssl", "dgst", "-sha256", *args, "-binary"]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout


def openssl_text(text, secret=SECRET):
    return openssl(text, "-hmac", secret)


def openssl_key(text, key):
    return openssl(text, "-mac", "HMAC", "-macopt", "hexkey:" + key.hex())


def python(text, key=SECRET.encode(), algorithm="sha256"):
    return hmac.new(key, text.encode(), algorithm).digest()


def perl(text, function, secret=SECRET):
    """`function` is one of Digest::SHA, which writes base64 without padding."""
    script = f"use Digest::SHA qw({function}); local $/; my $t = <STDIN>; print {function}($t, $ARGV[0]);"
    return subprocess.run(["perl", "-e", script, secret], input=text.encode(), capture_output=True, check=True).stdout.decode()


def b64(digest):
    return base64.b64encode(digest).decode()


def signer(name, headers, secret=SECRET):
    return {"name": name, "secret": secret, "headers": headers, "body": BODY}


def service(name, timestamp, signature, secret=SECRET):
    return signer(name, {"X-Service-Timestamp": timestamp, "X-Service-Signature": signature}, secret)


MICRO = MS + "567"
DATE = "2025-10-09T08:53:21Z"
FRACTION = "1760000001.234567"

print(json.dumps([
    service("openssl, hex, milliseconds", MS, openssl_text(f"{MS}.{BODY}").hex()),
    service("openssl, base64, seconds", SECONDS, b64(openssl_text(f"{SECONDS}.{BODY}"))),
    service("openssl, a key in hex", MS, openssl_key(f"{MS}.{BODY}", KEY).hex(), KEY.hex()),
    service("openssl, a key in base64", SECONDS, openssl_key(f"{SECONDS}.{BODY}", KEY).hex(), b64(KEY)),
    service("python, a key in base64url", MS, python(f"{MS}.{BODY}", URL_KEY).hex(), base64.urlsafe_b64encode(URL_KEY).decode().rstrip("=")),
    service("python, a key that is the secret in base64", MS, python(f"{MS}.{BODY}", b64(SECRET.encode()).encode()).hex()),
    service("python, base64url without padding", MS, base64.urlsafe_b64encode(python(f"{MS}.{BODY}")).decode().rstrip("=")),
    service("python, upper-case hex", SECONDS, python(f"{SECONDS}.{BODY}").hex().upper()),
    service("python, sha256= and hex", MS, "sha256=" + python(f"{MS}.{BODY}").hex()),
    service("python, v1, and base64", SECONDS, "v1," + b64(python(f"{SECONDS}.{BODY}"))),
    service("python, whsec_ before a key in base64", SECONDS, "v1," + b64(python(f"{SECONDS}.{BODY}", KEY)), "whsec_" + b64(KEY)),
    service("python, microseconds", MICRO, python(f"{MICRO}.{BODY}").hex()),
    service("python, a date", DATE, python(f"{DATE}.{BODY}").hex()),
    service("perl, hex, seconds", SECONDS, perl(f"{SECONDS}.{BODY}", "hmac_sha256_hex")),
    service("perl, a secret with a line break", MS, perl(f"{MS}.{BODY}", "hmac_sha256_hex", SECRET + "\n")),
    service("perl, base64 without padding", SECONDS, perl(f"{SECONDS}.{BODY}", "hmac_sha256_base64")),
    service("python, a fraction of seconds", FRACTION, python(f"{FRACTION}.{BODY}").hex()),
    service("python, base64 of the hex digits", MS, b64(python(f"{MS}.{BODY}").hex().encode())),
    service("python, SHA-512", MS, python(f"{MS}.{BODY}", algorithm="sha512").hex()),
    service("python, a colon for the dot", MS, python(f"{MS}:{BODY}").hex()),
    service("python, the body before the timestamp", SECONDS, python(f"{BODY}{SECONDS}").hex()),
    signer("like GitHub", {"X-Hub-Signature-256": "sha256=" + python(BODY).hex()}),
    signer("like Stripe", {"Stripe-Signature": f"t={SECONDS},v1=" + python(f"{SECONDS}.{BODY}").hex()}),
    signer("like Slack", {"X-Slack-Request-Timestamp": SECONDS, "X-Slack-Signature": "v0=" + python(f"v0:{SECONDS}:{BODY}").hex()}),
    signer("like Standard Webhooks", {
        "webhook-id": "msg_1",
        "webhook-timestamp": SECONDS,
        "webhook-signature": "v1," + b64(python(f"msg_1.{SECONDS}.{BODY}", KEY)),
    }, "whsec_" + b64(KEY)),
], indent=2, ensure_ascii=False))
