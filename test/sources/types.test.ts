/** What the types of sources promise: handlers get the events of their own source, and what a closed map does not list is refused. */
import { describe, expect, expectTypeOf, it } from "vitest";
import { createReceiver, type MessageInboundEvent } from "../../src/index.ts";
import { github, type StripeEvent, service, shopify, standardWebhooks, stripe } from "../../src/sources/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";

interface Paid {
  readonly type: "invoice.paid";
  readonly id: string;
  readonly data: { readonly object: { readonly id: string; readonly amount: number } };
}

interface Deleted {
  readonly type: "customer.deleted";
  readonly id: string;
  readonly data: { readonly object: { readonly id: string } };
}

const store = () => memoryStore({ volatile: true });
const secrets = "a secret of some length";
const standardSecret = "whsec_b25jZWhvb2sgdGVzdHMgMDEyMzQ1Njc4OWFiY2RlZg==";

describe("the types of a receiver", () => {
  it("give handlers the events of their source", () => {
    const receiver = createReceiver({
      store: store(),
      sources: {
        messages: service({ secrets }),
        billing: stripe<Paid | Deleted>({ secrets }),
        code: github<{ push: { readonly after: string } }>({ secrets }),
        shop: shopify<{ "orders/create": { readonly total_price: string } }>({ secrets }),
      },
    });
    receiver
      .source("messages")
      .on("message.inbound", (event) => expectTypeOf(event).toEqualTypeOf<MessageInboundEvent>());
    receiver.source("billing").on("invoice.paid", (event) => expectTypeOf(event.data.object.amount).toBeNumber());
    receiver.source("billing").onAny((event) => expectTypeOf(event).toEqualTypeOf<Paid | Deleted>());
    receiver.source("code").on("push", (event) => expectTypeOf(event.after).toBeString());
    receiver.source("shop").on("orders/create", (event, ctx) => {
      expectTypeOf(event.total_price).toBeString();
      expectTypeOf(ctx.header("x-shopify-shop-domain")).toEqualTypeOf<string | undefined>();
    });
  });

  it("refuse what is not there", () => {
    const receiver = createReceiver({
      store: store(),
      sources: { messages: service({ secrets }), billing: stripe<Paid | Deleted>({ secrets }) },
    });
    // @ts-expect-error a type that the closed union does not have
    receiver.source("billing").on("invoice.payed", () => {});
    // @ts-expect-error a source that is not in `sources`
    expect(() => receiver.source("biling")).toThrow();
    // @ts-expect-error a receiver of several sources has no handlers of its own
    expect(() => receiver.on("message.inbound", () => {})).toThrow();
    // @ts-expect-error an option of another preset
    expect(() => stripe({ secrets, repeats: "id" })).toThrow(/repeats/);
    // @ts-expect-error a misspelt option of this preset: the message names the right one
    expect(() => github({ secrets, repeat: "id" })).toThrow(/"repeats"/);
    // @ts-expect-error another one
    expect(() => standardWebhooks({ secrets: standardSecret, lanes: null })).toThrow(/"lane"/);
    // @ts-expect-error a default source has secrets
    expect(() => createReceiver({ store: store() })).toThrow(/secrets/);
  });

  it("take any type where the provider may send any", () => {
    const open = createReceiver({ store: store(), source: stripe({ secrets }) });
    open.on("anything.at.all", (event) => expectTypeOf(event).toEqualTypeOf<StripeEvent>());
    const standard = createReceiver({ store: store(), source: standardWebhooks({ secrets: standardSecret }) });
    standard.on("user.created", (event) => expectTypeOf(event.data).toBeUnknown());
  });
});
