/** The faults that use of the packed product showed: events lost, doubled or seen. Each was fixed, and is put back in one place. */
import type { Bug } from "./bugs.ts";
import { code } from "./places.ts";

export const IN_USE: readonly Bug[] = [
  {
    // A process knows what it has accepted, and the store is not asked: a restored inbox never gets it again.
    name: "known events are remembered",
    room: "accept",
    tests: "test/receiver/restored.test.ts",
    places: [
      code(
        "src/inbox/group-commit.ts",
        "accept($event, $parsed, $done)",
        "if (this.#accepts.join($identity, $event, $done)) return;",
        `if (this.known?.has($identity)) return $done(null, this.known.get($identity));
        $0`,
      ),
      code(
        "src/inbox/group-commit.ts",
        "#succeeded",
        "answer($accepts, $result);",
        `$0
        for (const [index, { event }] of $accepts.entries()) {
          const { outcome } = $result.accepted[index];
          this.known ??= new Map();
          if (outcome === "accepted") this.known.set(identityText(event), repeatOf(event, $result.accepted[index]));
        }`,
      ),
    ],
  },
  {
    // Of two equal bodies in two lanes, the second joins the first.
    name: "joined without the lane",
    room: "accept",
    tests: "test/inbox/batcher.test.ts",
    places: [
      code(
        "src/inbox/group-commit.ts",
        "accept($event, $parsed, $done)",
        "identityText($event)",
        'identityText({ ...$event, lane: { source: "", tenant: null, name: null, order: null } })',
      ),
    ],
  },
  {
    name: "an unhandled event makes others late",
    room: "claim",
    tests: "test/stores/memory.test.ts",
    places: [code("src/inbox/lane.ts", "#passOver", "$bySequence && !$late", "!$late")],
  },
  {
    name: "a lease that did not run keeps its move",
    room: "settle",
    tests: "test/stores/memory.test.ts",
    places: [code("src/inbox/lane.ts", "#ended", "if (!$request.ran) this.#takeBackMove($$move);", "")],
  },
  {
    // As an epoch that is counted: after a restore it comes again.
    name: "a token that comes again",
    room: "settle",
    tests: "test/stores/memory.test.ts",
    caughtBy: "sim",
    says: "no handler saw it",
    places: [code("src/inbox/lane.ts", "lease", "randomToken()", "1")],
  },
  {
    name: "a replaced inbox is not noticed",
    room: "accept",
    tests: "test/receiver/restored.test.ts",
    places: [code("src/receiver/engine.ts", "#noteNewId", "this.#highestId >= $before", "false")],
  },
  {
    name: "accounts share a lane",
    room: "sources",
    tests: "test/sources/owners.test.ts",
    places: [code("src/sources/stripe.ts", "laneOf", "$owner !== undefined", "false")],
  },
  {
    name: "stalled bodies keep their room",
    room: "body limits",
    tests: "test/receiver/overload.test.ts",
    places: [code("src/receiver/body-limits.ts", "stalledMs", "this.isPaused ? 0 : $ms", "0")],
  },
  {
    name: "large bodies take no turns",
    room: "body limits",
    tests: "test/receiver/reading.test.ts",
    places: [
      code(
        "src/receiver/body-limits.ts",
        "#makeRoom",
        "return $read.pause();",
        "this.#cutHeaviest(); return undefined;",
      ),
    ],
  },
  {
    name: "a body is read without a signature",
    room: "body limits",
    tests: "test/adapters/node-io.unread-bodies.test.ts",
    places: [code("src/sources/define-source.ts", "isProven", "$signedBy === undefined", "true")],
  },
  {
    name: "a file of two names is opened",
    room: "stores",
    tests: "test/stores/sqlite-files.test.ts",
    places: [code("src/stores/sqlite/connection.ts", "checkIsAlone", "$nlink > 1", "false")],
  },
  {
    name: "a removed log is not missed",
    room: "stores",
    tests: "test/stores/sqlite-files.test.ts",
    places: [code("src/stores/sqlite/disk-space.ts", "FILES", '["", $$logs]', '[""]')],
  },
  {
    name: "a connection to a standby stays",
    room: "stores",
    tests: "test/stores/postgres/standby.test.ts",
    places: [
      code("src/stores/postgres/failures.ts", "leadsAstray", "$states.test($state)", "/^(?:08|57P)/.test($state)"),
      code("src/stores/postgres/session.ts", "takeClient", "$isKnown ? $client : checked($client)", "$client"),
    ],
  },
  {
    // The server's default level then decides, and a conflict of two statements fails a delivery.
    name: "a transaction of any isolation",
    room: "stores",
    tests: "test/stores/postgres/isolation.test.ts",
    places: [code("src/stores/postgres/session.ts", "BEGIN", '"begin isolation level read committed"', '"begin"')],
  },
  {
    name: "secrets of before the request say no",
    room: "accept",
    tests: "test/sources/keyring-provider-reread.test.ts",
    places: [code("src/sources/keyring-provider.ts", "fresherThan", "$entry.readAt >= $cameAt", "true")],
  },
  {
    name: "a moved inbox is opened",
    room: "copy",
    tests: "test/stores/memory.test.ts",
    places: [code("src/inbox/store-rules.ts", "checkMoved", "$allowed === true", "true")],
  },
  {
    name: "a form cut in other ways is a new event",
    room: "sources",
    tests: "test/sources/twilio.test.ts",
    places: [
      code(
        "src/sources/twilio.ts",
        "verify($head, $body, $keys)",
        'signedBy($keys, $signature, "sha1", [$spelling, $pairs], null, hash("sha256", $header))',
        'signedBy($keys, $signature, "sha1", [$spelling, $pairs], null, hash("sha256", $body))',
      ),
    ],
  },
  {
    name: "another spelling is a conflict",
    room: "accept",
    tests: "test/sources/twilio.test.ts",
    places: [code("src/inbox/store-rules.ts", "isConflict", "$incoming.isSame?.($$body) !== true", "true")],
  },
  {
    name: "an identity need not be said",
    room: "sources",
    tests: "test/sources/hmac-source.test.ts",
    places: [
      code(
        "src/sources/hmac-source.ts",
        "checkIdentity",
        "if ($identity === undefined) throw $error;",
        "if ($identity === undefined) return;",
      ),
    ],
  },
  {
    name: "nothing gives way in the quarantine",
    room: "accept",
    tests: "test/stores/memory.test.ts",
    places: [code("src/inbox/store-rules.ts", "bodiesGivingWay", "!$reasons.includes($reason)", "true")],
  },
  {
    name: "fields that no source names are shown",
    room: "masking",
    tests: "test/inbox/masking.test.ts",
    places: [
      code(
        "src/inbox/masking.ts",
        "collected",
        "$field?.isShown && shownText($value) === $value",
        "shownText($value) === $value",
      ),
    ],
  },
  {
    name: "kept headers are shown",
    room: "masking",
    tests: "test/inbox/masking.test.ts",
    places: [code("src/inbox/masking.ts", "keptTexts", "$head === null", "true")],
  },
  {
    name: "keys of an event are shown",
    room: "masking",
    tests: "test/inbox/masking.test.ts",
    places: [code("src/inbox/masking.ts", "collected", "$below === undefined && !isOrdinary($key)", "false")],
  },
  {
    name: "an empty secret is the same",
    room: "accept",
    tests: "test/sources/secret.test.ts",
    places: [code("src/internal/same-secret.ts", "isSameSecret", '$isSame && $given !== ""', "$isSame")],
  },
  {
    name: "alerts are signed with a webhook secret",
    room: "accept",
    tests: "test/receiver/alerts.test.ts",
    places: [code("src/create.ts", "refuseSharedSecret", "$secret === undefined", "true")],
  },
  {
    name: "an effect sets a pragma",
    room: "effects",
    tests: "test/stores/sqlite-effects.test.ts",
    places: [code("src/stores/sqlite/effect-connection.ts", "refusalOf", '$key !== "pragma"', "true")],
  },
  {
    name: "pages of bodies without a bound",
    room: "stores",
    tests: "test/stores/large-bodies.test.ts",
    places: [code("src/inbox/store-rules.ts", "MOST_BYTES", "16 * 1024 * 1024", "Number.MAX_SAFE_INTEGER")],
  },
  {
    name: "a claim without a bound in bytes",
    room: "claim",
    tests: "test/stores/memory.test.ts",
    places: [code("src/inbox/store-rules.ts", "roomLeft", "$bytes >= $most", "false")],
  },
  {
    name: "a large event is searched",
    room: "masking",
    tests: "test/inbox/masking.test.ts",
    places: [code("src/inbox/masking.ts", "search", "$quoted.bytes > $most", "false")],
  },
  {
    name: "a form of any size is parsed",
    room: "sources",
    tests: "test/sources/twilio.test.ts",
    places: [code("src/sources/twilio.ts", "fieldsOf", "$body.length > LONGEST_FORM", "false")],
  },
  {
    name: "all keys are tried in one go",
    room: "body limits",
    tests: "test/receiver/overload.test.ts",
    places: [code("src/receiver/body-limits.ts", "HASHED_AT_ONCE", "2 * 1024 * 1024", "Number.MAX_SAFE_INTEGER")],
  },
  {
    name: "a second batch without effects",
    room: "accept",
    tests: "test/inbox/batcher-beside.test.ts",
    places: [code("src/inbox/group-commit.ts", "#commit", "$effects.length > 0", "true")],
  },
];
