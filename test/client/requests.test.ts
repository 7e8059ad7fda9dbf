import { describe, expect, it } from "vitest";
import { numberUpdateIssues, searchIssues, sendIssues, webhookUpdateIssues } from "../../src/client/checks.ts";

const RECIPIENT = "+14155550123";
const sms = { sendFrom: "num_1", to: [RECIPIENT], messageType: "SMS", text: "hello", externalReference: "order-1" };
const medium = { storageKey: "media/1", mimeType: "image/png", byteLength: 1_024 };
const mms = { ...sms, messageType: "MMS", media: [medium] };

describe("sendIssues()", () => {
  it("finds nothing in an SMS and in an MMS", () => {
    expect(sendIssues(sms)).toEqual([]);
    expect(sendIssues({ ...mms, media: [{ ...medium, sourceUrl: "https://a.example", fileName: "a.png" }] })).toEqual(
      [],
    );
  });

  it("takes an SMS without text (SND-26)", () => {
    const { text: _, ...without } = sms;
    expect(sendIssues(without)).toEqual([]);
  });

  it.each([undefined, null, "SMS", [sms], 7])("refuses what is no object: %j", (request) => {
    expect(sendIssues(request)).toEqual(["request: must be an object"]);
  });

  it("takes a field that is undefined for an absent one", () => {
    expect(sendIssues({ ...sms, text: undefined, media: undefined })).toEqual([]);
    expect(sendIssues({ ...sms, externalReference: undefined })).toEqual([
      "externalReference: is missing; it must be a text that is not empty",
    ]);
  });

  it.each([RECIPIENT, "", 7, null])(
    "refuses a sendFrom that is no numberId, and says what it takes (SND-3)",
    (sendFrom) => {
      expect(sendIssues({ ...sms, sendFrom })).toEqual([
        "sendFrom: must be a numberId as numbers.list() shows it, not the phone number",
      ]);
    },
  );

  it.each([undefined, null, RECIPIENT, [], {}])(
    "refuses recipients that are no list with an element: %j (SND-6)",
    (to) => {
      expect(sendIssues({ ...sms, to })).toEqual(["to: must be a list of at least one phone number"]);
    },
  );

  it("refuses a recipient that is no text (SND-6)", () => {
    expect(sendIssues({ ...sms, to: [RECIPIENT, 14_155_550_123, null] })).toEqual([
      "to.1: must be a text",
      "to.2: must be a text",
    ]);
    const holes = [RECIPIENT, RECIPIENT];
    delete holes[0];
    expect(sendIssues({ ...sms, to: holes })).toEqual(["to.0: must be a text"]);
  });

  it("leaves one wrong recipient to the service, which rejects it as data (SND-7, CLI-9)", () => {
    expect(sendIssues({ ...sms, to: ["4155550123", RECIPIENT, ""] })).toEqual([]);
  });

  it.each(["4155550123", "+04155550123", "+1", "+1415555012345678", " +14155550123", "+1 415 555 0123", ""])(
    "refuses a call whose every recipient is certainly no E.164 number: %j (SND-25)",
    (to) => {
      expect(sendIssues({ ...sms, to: [to, to] })).toEqual([
        "to: holds no phone number in E.164 form, a plus sign and 2 to 15 digits without spaces",
      ]);
    },
  );

  it.each(["+14", "+123456789012345"])("takes the shortest and the longest number: %s (SND-25)", (to) => {
    expect(sendIssues({ ...sms, to: [to] })).toEqual([]);
  });

  it.each(["sms", "RCS", null, 1])("refuses a messageType but SMS and MMS: %j (SND-10)", (messageType) => {
    expect(sendIssues({ ...sms, messageType })).toEqual(['messageType: must be "SMS" or "MMS"']);
  });

  it.each([[[medium]], [[]], [null]])("refuses an SMS with media, an empty list too (SND-11)", (media) => {
    expect(sendIssues({ ...sms, media })).toEqual(["media: must be left out for SMS"]);
  });

  it.each([undefined, null, [], {}, "x"])("refuses an MMS without media: %j (SND-12)", (media) => {
    expect(sendIssues({ ...mms, media })).toEqual(["media: must be a list of at least one medium for MMS"]);
  });

  it("refuses a medium with missing or wrong fields, each by its path (SND-13)", () => {
    const media = [medium, null, { storageKey: 7, byteLength: 1.5, sourceUrl: null }];
    expect(sendIssues({ ...mms, media })).toEqual([
      "media.1: must be an object",
      "media.2.mimeType: is missing; it must be a text",
      "media.2.storageKey: must be a text",
      "media.2.byteLength: must be a whole number of bytes",
      "media.2.sourceUrl: must be a text",
    ]);
  });

  it.each(["", null, 7])("refuses an externalReference that is no text or empty: %j (SND-14)", (externalReference) => {
    expect(sendIssues({ ...sms, externalReference })).toEqual(["externalReference: must be a text that is not empty"]);
  });

  it.each([null, 7])("refuses a text that is none: %j (SND-26)", (text) => {
    expect(sendIssues({ ...sms, text })).toEqual(["text: must be a text"]);
  });

  it("refuses an unknown field as the misspelling that it most likely is (GEN-9)", () => {
    expect(sendIssues({ ...sms, externalRefrence: "x" })).toEqual([
      'externalRefrence: is not known here. Did you mean "externalReference"?',
    ]);
    expect(sendIssues({ ...mms, media: [{ ...medium, filename: "a" }] })).toEqual([
      'media.0.filename: is not known here. Did you mean "fileName"?',
    ]);
    expect(sendIssues({ ...sms, priority: 1 })).toEqual([
      "priority: is not known here. Known: sendFrom, to, messageType, text, media, externalReference.",
    ]);
  });

  it.each(["toString", "constructor", "__proto__"])("knows no field that every object has: %s", (name) => {
    const issues = sendIssues({ ...sms, ...JSON.parse(`{"${name}":"x"}`) });
    expect(issues).toHaveLength(1);
    expect(issues[0]).toMatch(/ is not known here\./);
  });

  it("never shows a value, nor a key that could be one", () => {
    const marked = "marked-4711";
    const issues = [
      ...sendIssues({ ...sms, [RECIPIENT]: 1, [marked]: 1, sendFrom: RECIPIENT, to: [marked], messageType: marked }),
      ...sendIssues({ ...mms, text: { marked }, media: [{ ...medium, byteLength: marked, mimeType: [marked] }] }),
    ];
    expect(issues.length).toBeGreaterThan(7);
    expect(issues.join()).not.toMatch(/marked|415555/);
    expect(issues.filter((issue) => issue.startsWith("(a key): is not known here. Known: "))).toHaveLength(2);
  });

  it("tells 20 problems at most", () => {
    const wrong = Array.from({ length: 5_000 }, () => 7);
    const fields = Object.fromEntries(wrong.map((_, i) => [`field${i}`, i]));
    expect(sendIssues({ ...sms, to: wrong })).toHaveLength(20);
    expect(sendIssues({ ...mms, media: wrong })).toHaveLength(20);
    expect(sendIssues({ ...sms, ...fields, to: wrong })).toHaveLength(20);
  });
});

describe("numberUpdateIssues()", () => {
  it("finds nothing in an update, and null clears what can be cleared (UPD-8)", () => {
    const urls = { webhookInboundOverride: "https://a.example/in", webhookDeliveryOverride: "HTTP://a.example" };
    expect(numberUpdateIssues({})).toEqual([]);
    expect(numberUpdateIssues({ campaignregId: "C1", smsEnabled: true, mmsEnabled: false, ...urls })).toEqual([]);
    const cleared = { campaignregId: null, webhookInboundOverride: null, webhookDeliveryOverride: null };
    expect(numberUpdateIssues(cleared)).toEqual([]);
  });

  it.each([undefined, null, [], "C1"])("refuses what is no object: %j (UPD-4)", (update) => {
    expect(numberUpdateIssues(update)).toEqual(["update: must be an object"]);
  });

  it("refuses campaignRegId and says how requests spell it (UPD-7, CLI-8)", () => {
    const right = 'campaignRegId: requests write "campaignregId", with a small r';
    expect(numberUpdateIssues({ campaignRegId: "C1" })).toEqual([right]);
    expect(numberUpdateIssues({ campaignRegId: null, campaignregId: "C1" })).toEqual([right]);
    expect(numberUpdateIssues({ campaignRegId: undefined })).toEqual([]);
  });

  it.each(["campaignregid", "CampaignRegId", "campaignId"])(
    "names the right spelling for %s as well (CLI-8)",
    (name) => {
      expect(numberUpdateIssues({ [name]: "C1" })).toEqual([
        `${name}: is not known here. Did you mean "campaignregId"?`,
      ]);
    },
  );

  it("refuses a campaignregId that is no text (UPD-4)", () => {
    expect(numberUpdateIssues({ campaignregId: 7 })).toEqual(["campaignregId: must be a text, or null to clear it"]);
  });

  it.each([null, 1, "true"])("refuses a switch that is not true or false: %j (UPD-9)", (value) => {
    expect(numberUpdateIssues({ smsEnabled: value, mmsEnabled: value })).toEqual([
      "smsEnabled: must be true or false",
      "mmsEnabled: must be true or false",
    ]);
  });

  it.each(["", "a.example", "ftp://a.example", "https://", "javascript:alert(1)", 7])(
    "refuses an override that is no http or https URL: %j (UPD-5, UPD-15)",
    (url) => {
      expect(numberUpdateIssues({ webhookInboundOverride: url, webhookDeliveryOverride: url })).toEqual([
        "webhookInboundOverride: must be an http or https URL, or null to remove it",
        "webhookDeliveryOverride: must be an http or https URL, or null to remove it",
      ]);
    },
  );
});

describe("searchIssues()", () => {
  it.each([undefined, {}, { npa: "559", nxx: "555" }, { city: "Fresno", state: "CA", zipCode: "93721" }])(
    "finds nothing in %j (SEA-1, SEA-15)",
    (search) => {
      expect(searchIssues(search)).toEqual([]);
    },
  );

  it.each([null, [], "CA"])("refuses what is no object: %j (SEA-1)", (search) => {
    expect(searchIssues(search)).toEqual(["search: must be an object"]);
  });

  it("refuses a filter that is no text (SEA-1)", () => {
    expect(searchIssues({ npa: 559, state: null })).toEqual(["npa: must be a text", "state: must be a text"]);
  });

  it("refuses nxx without npa (SEA-2, SEA-15)", () => {
    expect(searchIssues({ nxx: "555", npa: undefined })).toEqual(["nxx: needs npa"]);
  });

  it("refuses city without state (SEA-3, SEA-15)", () => {
    expect(searchIssues({ city: "Fresno" })).toEqual(["city: needs state"]);
  });

  it("refuses rateCenter, without state and with it (SEA-4, SEA-5, SEA-15)", () => {
    const currently = "rateCenter: is currently refused by the service; validateRequests: false sends it all the same";
    expect(searchIssues({ rateCenter: "FRESNO" })).toEqual(["rateCenter: needs state", currently]);
    expect(searchIssues({ rateCenter: "FRESNO", state: "CA" })).toEqual([currently]);
  });

  it("names the field that an unknown one most likely is", () => {
    expect(searchIssues({ zipcode: "93721" })).toEqual(['zipcode: is not known here. Did you mean "zipCode"?']);
  });
});

describe("webhookUpdateIssues()", () => {
  const update = { endpointUrl: "https://a.example/in", enabled: true, signingEnabled: true, secret: "s".repeat(32) };

  it("finds nothing in an update (WHK-9, WHK-10, WHK-11)", () => {
    expect(webhookUpdateIssues(update)).toEqual([]);
    expect(webhookUpdateIssues({ signingEnabled: false, endpointUrl: null })).toEqual([]);
  });

  it.each([undefined, null, [], "on"])("refuses what is no object: %j", (value) => {
    expect(webhookUpdateIssues(value)).toEqual(["update: must be an object"]);
  });

  it("refuses an update without signingEnabled (WHK-8)", () => {
    expect(webhookUpdateIssues({ enabled: true })).toEqual(["signingEnabled: is missing; it must be true or false"]);
    expect(webhookUpdateIssues({ signingEnabled: null })).toEqual(["signingEnabled: must be true or false"]);
  });

  it.each(["", "a.example", "file:///etc/passwd", 7])("refuses the endpointUrl %j (WHK-9, WHK-25)", (endpointUrl) => {
    expect(webhookUpdateIssues({ ...update, endpointUrl })).toEqual([
      "endpointUrl: must be an http or https URL, or null to remove it",
    ]);
  });

  it.each([null, "yes"])("refuses enabled: %j (WHK-10)", (enabled) => {
    expect(webhookUpdateIssues({ ...update, enabled })).toEqual(["enabled: must be true or false"]);
  });

  it.each([
    ["elevenbytes", "is 11 bytes long; a secret has at least 16"],
    ["                    ", "holds nothing but white space"],
  ])("refuses the secret %j, which no receiver takes (WHK-24)", (secret, rule) => {
    expect(webhookUpdateIssues({ ...update, secret })).toEqual([
      `secret: ${rule}. Receivers refuse it, so it is not sent; validateRequests: false sends it`,
    ]);
  });

  it.each(["", null, 7])("refuses a secret that is no text or empty (WHK-11, WHK-24)", (secret) => {
    expect(webhookUpdateIssues({ ...update, secret })).toEqual(["secret: must be a text that is not empty"]);
  });

  it("refuses an answer given back as an update, for the service does not take its fields (GEN-9)", () => {
    expect(webhookUpdateIssues({ ...update, eventClass: "INBOUND" })).toEqual([
      "eventClass: is not known here. Known: endpointUrl, enabled, signingEnabled, secret.",
    ]);
  });
});
