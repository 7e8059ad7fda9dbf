/** The bugs that somebody chose: 20 that receivers of webhooks have, and others in lanes, effects and leases. */
import type { Bug } from "./bugs.ts";
import { code, importIn, words } from "./places.ts";

const LOST = "(acknowledged and not stored)";
const UNSIGNED = "was accepted, and nobody signed it";

export const BY_HAND: readonly Bug[] = [
  {
    name: "NORMAL sync",
    inSmall: true,
    room: "accept",
    tests: "test/stores/sqlite-open.test.ts",
    caughtBy: "power",
    says: "lost row-",
    places: [
      code("src/stores/sqlite/connection.ts", "openConnection", '"synchronous = FULL"', '"synchronous = NORMAL"'),
      // The store looks what became of its setting.
      code("src/stores/sqlite/connection.ts", "checkDurable", "$synchronous === 2", "$synchronous === 1"),
    ],
  },
  {
    name: "answer before commit",
    inSmall: true,
    room: "accept",
    tests: "test/receiver/answers.test.ts",
    caughtBy: "crash",
    says: LOST,
    places: [
      code(
        "src/receiver/http.ts",
        "#receive",
        "await $engine.accept($$event)",
        '(void $engine.accept($$event), { outcome: "accepted", event: 0, lane: 0 })',
      ),
    ],
  },
  {
    // What is left is a look into what this process has committed, and then the insert.
    name: "check-then-insert",
    inSmall: true,
    room: "accept",
    tests: "test/stores/sqlite-data.test.ts",
    caughtBy: "race",
    says: "double: ",
    places: [
      words(
        "src/stores/sqlite/schema.ts",
        "inbox",
        "create unique index oncehook_event_place",
        "create index oncehook_event_place",
      ),
    ],
  },
  {
    name: "identity from the signature",
    inSmall: true,
    room: "accept",
    tests: "test/receiver/told.test.ts",
    caughtBy: "e2e",
    says: "twice msg_",
    places: [
      code(
        "src/sources/define-source.ts",
        "read($head)",
        "$refused ? filtered($stored) : $stored",
        `$refused ? filtered($stored) : {
          ...$stored,
          lane: { ...$stored.lane, name: null, order: null },
          ownId: $head.header("x-service-signature") ?? "",
          sequence: 0,
        }`,
      ),
    ],
  },
  {
    name: "prefix compare",
    room: "accept",
    tests: "test/sources/messaging/verify-signature.test.ts",
    caughtBy: "fuzz",
    says: UNSIGNED,
    places: [
      code(
        "src/sources/keys.ts",
        "signed",
        "timingSafeEqual($one, $expected)",
        "timingSafeEqual($one.subarray(0, 16), $expected.subarray(0, 16))",
      ),
    ],
  },
  {
    name: "re-serialised body",
    room: "accept",
    tests: "test/sources/messaging/verify-signature.test.ts",
    caughtBy: "fuzz",
    says: UNSIGNED,
    places: [
      code(
        "src/sources/keys.ts",
        "signed",
        "this.hmac($hash, ...$parts)",
        `this.hmac($hash, ...$parts.map((part) => {
          if (typeof part === "string") return part;
          try {
            return Buffer.from(JSON.stringify(JSON.parse(Buffer.from(part).toString())));
          } catch {
            return part;
          }
        }))`,
      ),
    ],
  },
  {
    name: "deferred BEGIN",
    inSmall: true,
    room: "accept",
    tests: "test/stores/sqlite-sharing.test.ts",
    caughtBy: "race",
    says: "was answered with 503",
    places: [
      code("src/stores/sqlite/transaction.ts", "immediately", '"begin immediate"', '"begin"'),
      // What another wrote meanwhile makes it fail; our waiting for locks would try it again, and it were only slower.
      code("src/stores/sqlite/failures.ts", "isBusy", "$busy.test($code)", "/^SQLITE_(BUSY|LOCKED)$/.test($code)"),
    ],
  },
  {
    name: "short retention",
    inSmall: true,
    room: "prune",
    tests: "test/receiver/options.test.ts",
    caughtBy: "clock",
    says: "double: ",
    places: [
      code(
        "src/receiver/options.ts",
        "retentionOption",
        "numberOption($name, $value?.identitiesMs, $days, $bounds)",
        "numberOption($name, $value?.identitiesMs, DAY_MS / 144, $bounds)",
      ),
      code("src/receiver/options.ts", "retentionOption", "$tolerance + DAY_MS", "0"),
    ],
  },
  {
    name: "no fencing",
    inSmall: true,
    room: "settle",
    tests: "test/stores/memory.test.ts",
    caughtBy: "sim",
    says: "no handler saw it",
    places: [
      code(
        "src/inbox/lane.ts",
        "heldEvent($lane)",
        "$lane === undefined || $event || $token || $lane.holder !== $holder",
        '$lane === undefined || $holder === ""',
      ),
      code("src/inbox/lane.ts", "heldEvent", '$event?.state === "pending" ? $event : null', "$event"),
    ],
  },
  {
    name: "future timestamps allowed",
    inSmall: true,
    room: "accept",
    tests: "test/sources/messaging/verify.test.ts",
    caughtBy: "fuzz",
    says: "(too old or from the future) was accepted wrongly",
    places: [code("src/sources/define-source.ts", "checkAge", "$signedAt - $now > $tolerance.future", "false")],
  },
  {
    name: "empty secret",
    room: "accept",
    tests: "test/sources/secret.test.ts",
    caughtBy: "fuzz",
    says: "an empty text, to the verifier: a request that is signed with nothing passes",
    places: [
      code(
        "src/sources/secret.ts",
        "checked",
        'if ($text === "") throw $refuse($option, "is an empty text: look whether its environment variable is set");',
        "",
      ),
      code("src/sources/secret.ts", "checked", '$text.trim() === ""', "false"),
      code("src/sources/secret.ts", "checked", "$bytes.length === 0", "false"),
      code("src/sources/secret.ts", "MIN_SECRET_BYTES", "16", "0"),
    ],
  },
  {
    name: "parse before verify",
    inSmall: true,
    room: "accept",
    tests: "test/receiver/answers.test.ts",
    caughtBy: "fuzz",
    says: 'was told {"error":"invalid_event"} before it was verified',
    places: [
      code(
        "src/receiver/body-limits.ts",
        "verify",
        "const $match = await this.#matched({ head: $head, bytes: $bytes, $$more }, $context);",
        'if (!parseEvent($bytes).ok) return refused("signature_mismatch", answers.UNPROCESSABLE); $0',
      ),
      importIn("src/receiver/body-limits.ts", 'import { parseEvent } from "../sources/messaging/parse.ts";'),
    ],
  },
  {
    name: "text HMAC",
    room: "accept",
    tests: "test/sources/messaging/verify-signature.test.ts",
    caughtBy: "fuzz",
    says: "(body, decodes alike) was accepted, and nobody signed it",
    places: [
      code(
        "src/sources/keys.ts",
        "signed",
        "this.hmac($hash, ...$parts)",
        'this.hmac($hash, ...$parts.map((part) => (typeof part === "string" ? part : new TextDecoder().decode(part))))',
      ),
    ],
  },
  {
    name: "swallowed store error",
    inSmall: true,
    room: "accept",
    tests: "test/receiver/faults.test.ts",
    caughtBy: "disk",
    says: LOST,
    places: [
      code(
        "src/receiver/http.ts",
        "#receive",
        "$engine.accept($$event)",
        '$0.catch(() => ({ outcome: "accepted", event: 0, lane: 0 }))',
      ),
    ],
  },
  {
    name: "prune by wall clock",
    inSmall: true,
    room: "prune",
    tests: "test/stores/memory.test.ts",
    caughtBy: "clock",
    says: LOST,
    places: [code("src/inbox/store-rules.ts", "retentionEnds", "Math.min($now, $newest)", "Math.max($now, $newest)")],
  },
  {
    // Of several headers of one name the first counts, whatever is in the others.
    name: "header join",
    inSmall: true,
    room: "sources",
    tests: "test/sources/headers.test.ts",
    caughtBy: "fuzz",
    says: "(timestamp, several) was accepted, and nobody signed it",
    places: [code("src/sources/headers.ts", "joined", '$value.join(", ")', "$value[0]")],
  },
  {
    name: "redirects followed",
    inSmall: true,
    room: "forward",
    tests: "test/tools/forward/http.test.ts",
    caughtBy: "sidecar",
    says: "followed a redirect to somebody else",
    places: [
      code(
        "src/tools/forward/http.ts",
        "exchange($request, $body)",
        '{ status: $status, retryAfter: $headers["retry-after"] }',
        `$headers.location === undefined
          ? $0
          : exchange(
              plainRequest($headers.location, { method: "POST", headers: $request.getHeaders() }),
              $body,
            )`,
      ),
    ],
  },
  {
    name: "body logged",
    inSmall: true,
    room: "accept",
    tests: "test/receiver/secrecy.test.ts",
    caughtBy: "leak",
    says: "log said ",
    places: [
      code(
        "src/receiver/http.ts",
        "#quarantine($delivery, $quarantine)",
        '{ code: "quarantined", $$facts }',
        '{ code: "quarantined", $$facts, body: Buffer.from($quarantine.raw).toString() }',
      ),
    ],
  },
  {
    name: "late event dropped",
    room: "accept",
    tests: "test/stores/memory.test.ts",
    caughtBy: "sim",
    says: LOST,
    places: [
      code(
        "src/stores/memory/batch.ts",
        "acceptInMemory($lanes, $incoming)",
        "const $lane = $known ?? addLane($state, $incoming);",
        `$0
        if ($lane.cursor !== null && $incoming.sequence < $lane.cursor) {
          return { outcome: "late", event: $state.lastEventId, lane: $lane.id };
        }`,
      ),
    ],
  },
  {
    // It is counted as one, and waits for its next attempt like any other.
    name: "dead letters retried",
    inSmall: true,
    room: "settle",
    tests: "test/stores/memory.test.ts",
    caughtBy: "sim",
    says: "had given it up",
    places: [
      code(
        "src/inbox/lane.ts",
        "#ended",
        "return this.#die($lane, $event, $onDead);",
        'this.#port.tally.count("deadLettered"); return this.rearm($lane);',
      ),
    ],
  },
  {
    // An older event that comes while a newer one is in its handler is not late, and goes to `on` behind it.
    name: "cursor moved at the end",
    inSmall: true,
    room: "claim",
    tests: "test/stores/memory.test.ts",
    caughtBy: "sim",
    says: "inversion: ",
    places: [
      code(
        "src/inbox/lane.ts",
        "#pass",
        '!$event.forced || $order !== "sequence"',
        '!$event.forced && $order !== "position"',
      ),
      code(
        "src/inbox/lane.ts",
        "#ended",
        '$port.finish($lane, $event, "done", $outcome);',
        `$0
        if ($port.order($lane) === "position" && !$event.late && !$event.forced) moveCursor($lane, $event.sequence);`,
      ),
    ],
  },
  {
    name: "ties reversed",
    room: "accept",
    tests: "test/stores/memory.test.ts",
    caughtBy: "crash",
    says: "inversion",
    places: [
      code(
        "src/inbox/lane.ts",
        "arrivalOf($lane, $event, $id)",
        "this.#sequenceAt($lane, $given)",
        "$given * PLACES + PLACES - 1 - ($id % PLACES)",
      ),
    ],
  },
  {
    // Falling positions delay each other without an end.
    name: "hold-back of the lowest",
    inSmall: true,
    room: "claim",
    tests: "test/stores/memory.test.ts",
    caughtBy: "sim",
    says: "though it is due at",
    places: [code("src/inbox/gap.ts", "armHeldBack($lane, $head)", "$lane.heldSince()", "$head.acceptedAt")],
  },
  {
    name: "positions without gaps",
    inSmall: true,
    room: "claim",
    tests: "test/inbox/gap.test.ts",
    caughtBy: "sim",
    says: "where nothing can be",
    places: [
      code("src/inbox/gap.ts", "arm", '$lane.order === "position" && $held', "$lane.order === null"),
      code(
        "src/inbox/gap.ts",
        "gapBefore",
        '$lane.order !== "sequence"',
        '$lane.order === "arrival" || $lane.order === null',
      ),
    ],
  },
  {
    name: "identity without the type",
    room: "accept",
    tests: "test/stores/sqlite.test.ts",
    caughtBy: "sim",
    says: "(acknowledged and not stored)",
    places: [
      words(
        "src/stores/sqlite/schema.ts",
        "inbox",
        "oncehook_event_place on oncehook_event (lane, seq, type);",
        "oncehook_event_place on oncehook_event (lane, seq);",
      ),
      words("src/stores/sqlite/statements.ts", "known", "and type = ?", "and ? <> ''"),
    ],
  },
  {
    // What has the cursor's own sequence is late to it.
    name: "cursor takes an equal sequence",
    room: "accept",
    tests: "test/stores/memory.test.ts",
    caughtBy: "sim",
    says: "not late: ",
    places: [code("src/inbox/lane.ts", "arrivalOf", "$sequence < $lane.cursor", "$sequence <= $lane.cursor")],
  },
  {
    name: "token not checked on SQLite",
    room: "settle",
    tests: "test/stores/sqlite.test.ts",
    caughtBy: "sim",
    says: "was recorded as failed, and no handler saw it",
    places: [
      code(
        "src/stores/sqlite/lanes.ts",
        "heldIn",
        "$rules.heldEvent($lane, $ref)",
        "$rules.heldEvent($lane, { ...$ref, token: $lane?.token ?? $ref.token })",
      ),
    ],
  },
  {
    name: "settled before the commit",
    room: "settle",
    tests: "test/inbox/batcher.test.ts",
    caughtBy: "sim",
    says: "was reported, and is not stored",
    places: [
      code(
        "src/inbox/group-commit.ts",
        "#commit",
        "const $batch = { settles: $settles, $$more };",
        `$0
        for (const { done } of $settles) done({ status: "settled" });`,
      ),
      code("src/inbox/group-commit.ts", "#succeeded", "guard(() => $queued.done($settled));", ""),
    ],
  },
  {
    name: "backoff off by one",
    room: "claim",
    tests: "test/inbox/backoff.test.ts",
    caughtBy: "sim",
    says: " not within ",
    places: [
      code(
        "src/inbox/gap.ts",
        "backoffMs",
        "Math.min($attempt, WAITS.length) - 1",
        "Math.min($attempt, WAITS.length - 1)",
      ),
    ],
  },
  {
    name: "effects of a lost lease",
    room: "effects",
    tests: "test/stores/sqlite.test.ts",
    caughtBy: "sim",
    says: "double: ",
    places: [
      code("src/stores/sqlite/lanes.ts", "completeWith", "if (heldIn($lanes, $lease) === null) return LOST;", ""),
    ],
  },
  {
    name: "effects of a failed attempt stay",
    room: "effects",
    tests: "test/stores/sqlite-effects.test.ts",
    caughtBy: "sim",
    says: "double: ",
    places: [
      code("src/stores/sqlite/lanes.ts", "completeWith", "ends($work, $rollback, $release)", "ends($work, $release)"),
    ],
  },
  {
    name: "a refused attempt counts as delivered",
    inSmall: true,
    room: "emulator",
    tests: "test/messaging/emulator/delivery/deliveries.retries.test.ts",
    caughtBy: "e2e",
    says: "lost msg_",
    places: [code("src/messaging/emulator/delivery/attempt.ts", "succeeded", "$status <= 299", "$status <= 599")],
  },
];
