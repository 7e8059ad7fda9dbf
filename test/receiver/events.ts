/** Bodies of deliveries, made by hand from the specification's tables. */

export interface OutboundWish {
  readonly messageId?: string;
  readonly apiClientId?: string;
  readonly status?: string;
  readonly occurredAt?: number;
  readonly to?: string;
  readonly errorMessage?: string;
  readonly extra?: Readonly<Record<string, unknown>>;
}

const OUTBOUND = {
  queued: { eventType: "message.queued", sequence: 1, status: "QUEUED" },
  sent: { eventType: "message.sent", sequence: 2, status: "sent" },
  delivery: { eventType: "message.delivery", sequence: 3, status: "delivered" },
  failed: { eventType: "message.failed", sequence: 4, status: "failed" },
} as const;

/** An outbound event: `queued` 1, `sent` 2, `delivery` 3, `failed` 4. */
export function outbound(kind: keyof typeof OUTBOUND, wish: OutboundWish = {}): string {
  const { eventType, sequence, status } = OUTBOUND[kind];
  const { messageId = "msg_1", apiClientId = "apc_1", occurredAt = 1_760_000_000_000 } = wish;
  const error =
    kind === "failed"
      ? { code: "PROVIDER_SEND_FAILED", message: wish.errorMessage ?? "The provider refused.", details: {} }
      : null;
  const data = {
    ...{ messageId, externalReference: "order-77", sendFrom: "+15550100001", to: wish.to ?? "+15550100002" },
    ...{ status: wish.status ?? status, error },
    ...(kind === "delivery" && { providerMessageRef: "prv-55" }),
  };
  return JSON.stringify({
    ...{ eventType, direction: "outbound", occurredAt, apiClientId, messageId, sequence, data },
    ...wish.extra,
  });
}

export interface InboundWish {
  readonly messageId?: string;
  readonly apiClientId?: string;
  readonly text?: string;
  readonly from?: string;
  readonly media?: readonly unknown[];
}

export function inbound(wish: InboundWish = {}): string {
  const {
    messageId = "msg_in_1",
    apiClientId = "apc_1",
    text = "Yes please",
    from = "+15550100002",
    media = [],
  } = wish;
  const data = {
    ...{ messageId, conversationId: "cnv_9", numberId: "num_3", from, to: "+15550100001", body: text, media },
    timestamp: 1_760_000_000_000,
  };
  return JSON.stringify({
    ...{ eventType: "message.inbound", direction: "inbound", occurredAt: 1_760_000_000_000, apiClientId, data },
  });
}
