import { describe, expect, it } from "vitest";
import { Entries, HandlerRegistry } from "../../src/inbox/handlers.ts";
import { serviceReader } from "../../src/sources/messaging/source.ts";
import { SERVICE_TYPES } from "./bench.ts";

const nothing = () => {};

/** The entries of a receiver of the service alone, and the registry of its entry. */
function entriesOf(): { entries: Entries<never>; registry: HandlerRegistry<never> } {
  const registry = new HandlerRegistry<never>(SERVICE_TYPES);
  const entries = new Entries([{ name: "service", source: serviceReader({ gapWait: () => 0 }), handlers: registry }]);
  return { entries, registry };
}

describe("HandlerRegistry", () => {
  it("gives an event to its handlers in order of registration, whatever the kind", () => {
    const registry = new HandlerRegistry<never>(SERVICE_TYPES);
    const [first, second, third, fourth] = [() => 1, () => 2, () => 3, () => 4];
    registry.onAny(first);
    registry.on("message.sent", second);
    registry.on(["message.sent", "message.failed"], third);
    registry.on("message.sent", fourth);
    for (let round = 0; round < 2; round++) {
      expect(registry.handlersFor("message.sent", false)).toEqual([first, second, third, fourth]);
      expect(registry.handlersFor("message.failed", false)).toEqual([first, third]);
      expect(registry.handlersFor("message.inbound", false)).toEqual([first]);
      registry.freeze();
    }
    expect(registry.handlersFor("message.sent", false)).toBe(registry.handlersFor("message.sent", false));
  });

  it("counts handlers that came after an event was asked about", () => {
    const registry = new HandlerRegistry<never>(SERVICE_TYPES);
    expect(registry.handlersFor("message.sent", false)).toEqual([]);
    registry.onAny(nothing);
    expect(registry.handlersFor("message.sent", false)).toEqual([nothing]);
  });

  it("keeps nothing for unknown types, which come from outside without bound", () => {
    const registry = new HandlerRegistry<never>(SERVICE_TYPES);
    registry.onAny(nothing);
    registry.freeze();
    expect(registry.handlersFor("message.read", false)).not.toBe(registry.handlersFor("message.read", false));
  });

  it("gives unknown types to onUnknown and onAny only (RCV-11)", () => {
    const registry = new HandlerRegistry<never>(SERVICE_TYPES);
    const [known, unknown, any] = [() => 1, () => 2, () => 3];
    registry.on("message.sent", known);
    registry.onUnknown(unknown);
    registry.onAny(any);
    registry.freeze();
    expect(registry.handlersFor("message.read", false)).toEqual([unknown, any]);
    expect(registry.handlersFor("message.sent", false)).toEqual([known, any]);
    expect(registry.handlersFor("constructor", false)).toEqual([unknown, any]);
  });

  it("gives late events to onLate only (RCV-7)", () => {
    const registry = new HandlerRegistry<never>(SERVICE_TYPES);
    const [any, late] = [() => 1, () => 2];
    registry.onAny(any);
    expect(registry.handlersFor("message.sent", true)).toEqual([]);
    registry.onLate(late);
    expect(registry.handlersFor("message.sent", true)).toEqual([late]);
    expect(registry.handlersFor("message.sent", false)).toEqual([any]);
  });

  it("keeps hooks in order", () => {
    const { entries } = entriesOf();
    const [first, second] = [() => 1, () => 2];
    entries.addHook("deadLetter", first);
    entries.addHook("deadLetter", second);
    entries.addHook("conflict", first);
    expect(entries.hooks).toEqual({ conflict: [first], error: [], deadLetter: [first, second] });
  });

  it.each<[string, (registry: HandlerRegistry<never>, entries: Entries<never>) => void]>([
    ["on", (registry) => registry.on("message.sent", nothing)],
    ["onAny", (registry) => registry.onAny(nothing)],
    ["onUnknown", (registry) => registry.onUnknown(nothing)],
    ["onLate", (registry) => registry.onLate(nothing)],
    ["addHook", (_, entries) => entries.addHook("error", nothing)],
  ])("refuses %s() once it is frozen", (_, register) => {
    const { entries, registry } = entriesOf();
    register(registry, entries);
    entries.freeze();
    expect(() => register(registry, entries)).toThrow(
      expect.objectContaining({
        code: "already_started",
        message: expect.stringMatching(/^Handlers must be registered/),
      }),
    );
  });

  it("names the likely type for a misspelled one, and says where later types go", () => {
    const registry = new HandlerRegistry<never>(SERVICE_TYPES);
    const misspelled = "message.delivered" as "message.delivery";
    const hint = 'Did you mean "message.delivery"? Types that the service adds later reach onUnknown().';
    const message = `on() knows no event type "message.delivered". ${hint}`;
    expect(() => registry.on(misspelled, nothing)).toThrow(
      expect.objectContaining({ code: "invalid_option", message }),
    );
    expect(() => registry.on(["message.sent", "nonsense" as "message.sent"], nothing)).toThrow(/Known: message.queued/);
    expect(registry.isEmpty).toBe(true);
  });

  it.each([[undefined], [null], [7], [[]], [[undefined]]])(
    "refuses %j for a type, which no event would have",
    (wrong) => {
      const registry = new HandlerRegistry<never>(SERVICE_TYPES);
      const message = expect.stringContaining('such as "message.inbound"');
      const refused = expect.objectContaining({ code: "invalid_option", message });
      expect(() => registry.on(wrong as unknown as "message.sent", nothing)).toThrow(refused);
      expect(registry.isEmpty).toBe(true);
    },
  );

  it.each([
    [null, "null"],
    [undefined, "undefined"],
    ["text", "string"],
    [{}, "object"],
  ])("refuses %j for a handler", (wrong, shown) => {
    const { entries, registry } = entriesOf();
    const handler = wrong as unknown as () => void;
    const error = expect.objectContaining({
      ...{ code: "invalid_option", message: `A handler must be a function, not ${shown}.` },
    });
    expect(() => registry.on("message.sent", handler)).toThrow(error);
    expect(() => registry.onLate(handler)).toThrow(error);
    expect(() => entries.addHook("error", handler)).toThrow(error);
  });
});
