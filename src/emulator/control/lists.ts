/** The lists of the controls: narrowed by filters, the newest ones within the limit, oldest first. */
import { numberOf, type State } from "../state/state.ts";
import type { Control } from "./control.ts";
import { filters, fitted } from "./inputs.ts";

const DEFAULT_LIMIT = 1_000;

type Lists = Pick<Control, "messages" | "requests" | "events" | "deliveries" | "attempts">;

export function createLists(state: State): Lists {
  return {
    messages(filter = {}) {
      const { since = 0, messageId, limit } = fitted("messages()", filters.messages, filter);
      const fits = (message: Listed) =>
        message.createdAt >= since && (messageId ?? message.messageId) === message.messageId;
      const both = [...[...state.messages.values()].filter(fits), ...[...state.inboundMessages.values()].filter(fits)];
      return newest(both.sort(byAge), limit);
    },
    requests(filter = {}) {
      const { since = 0, limit } = fitted("requests()", filters.requests, filter);
      return newest(
        [...state.requests.values()].filter(({ at }) => at >= since),
        limit,
      );
    },
    events(filter = {}) {
      const { since = 0, limit, ...rest } = fitted("events()", filters.events, filter);
      const found = [...state.events.values()].filter((event) => event.occurredAt >= since && isOf(event, rest));
      return newest(found, limit);
    },
    deliveries(filter = {}) {
      const { since = 0, limit, state: wanted, ...rest } = fitted("deliveries()", filters.deliveries, filter);
      const found = [...state.deliveries.values()].filter(
        (delivery) =>
          delivery.createdAt >= since && (wanted ?? delivery.state) === delivery.state && isOf(delivery, rest),
      );
      return newest(found, limit);
    },
    attempts(filter = {}) {
      const { since = 0, limit, ...rest } = fitted("attempts()", filters.events, filter);
      const found = [...state.deliveries.values()]
        .filter((delivery) => isOf(delivery, rest))
        .flatMap(({ deliveryId, eventId, attempts }) =>
          attempts.map((attempt) => ({ ...attempt, deliveryId, eventId })),
        );
      return newest(
        found.filter(({ at }) => at >= since).sort((a, b) => a.at - b.at),
        limit,
      );
    },
  };
}

function isOf(
  record: { readonly messageId: string; readonly eventType: string },
  { messageId, eventType }: { readonly messageId?: string | undefined; readonly eventType?: string | undefined },
): boolean {
  return (messageId ?? record.messageId) === record.messageId && (eventType ?? record.eventType) === record.eventType;
}

interface Listed {
  readonly messageId: string;
  readonly createdAt: number;
}

/**
 * In the order in which ids were given out: one counter numbers them, whatever tag a start of the emulator put before. Imported
 * ids of another form were there before what was given out since, and have their time only.
 */
function byAge(a: Listed, b: Listed): number {
  return numberOf("msg", a.messageId) - numberOf("msg", b.messageId) || a.createdAt - b.createdAt;
}

function newest<T>(records: readonly T[], limit = DEFAULT_LIMIT): readonly T[] {
  return records.slice(-limit);
}
