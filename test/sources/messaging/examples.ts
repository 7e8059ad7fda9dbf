/** One body per event type, written out as text, so that no code of ours had a hand in them. */

const queuedBody = `{"eventType":"message.queued","direction":"outbound","occurredAt":1763629200000,"apiClientId":"apc_7","messageId":"msg_1001","sequence":1,"data":{"messageId":"msg_1001","externalReference":"order-77","sendFrom":"+15550100001","to":"+15550100002","status":"QUEUED","error":null}}`;

export const sentBody = `{"eventType":"message.sent","direction":"outbound","occurredAt":1763629201000,"apiClientId":"apc_7","messageId":"msg_1001","sequence":2,"data":{"messageId":"msg_1001","externalReference":"order-77","sendFrom":"+15550100001","to":"+15550100002","status":"sent","error":null}}`;

export const deliveryBody = `{"eventType":"message.delivery","direction":"outbound","occurredAt":1763629202000,"apiClientId":"apc_7","messageId":"msg_1001","sequence":3,"data":{"messageId":"msg_1001","externalReference":"order-77","sendFrom":"+15550100001","to":"+15550100002","status":"delivered","error":null,"providerMessageRef":"prv-55"}}`;

export const failedBody = `{"eventType":"message.failed","direction":"outbound","occurredAt":1763629203000,"apiClientId":"apc_7","messageId":"msg_1002","sequence":4,"data":{"messageId":"msg_1002","externalReference":"order-78","sendFrom":"+15550100001","to":"+15550100003","status":"failed","error":{"code":"PROVIDER_SEND_FAILED","message":"The provider refused the message.","details":{}}}}`;

export const inboundBody = `{"eventType":"message.inbound","direction":"inbound","occurredAt":1763629204000,"apiClientId":"apc_7","data":{"messageId":"msg_2001","conversationId":"cnv_9","numberId":"num_3","from":"+15550100002","to":"+15550100001","body":"Yes 👍","media":[{"any":["shape"]},"or none",null],"timestamp":1763629203900}}`;

export const bodies = {
  "message.queued": queuedBody,
  "message.sent": sentBody,
  "message.delivery": deliveryBody,
  "message.failed": failedBody,
  "message.inbound": inboundBody,
} as const;

export const bytes = (text: string): Buffer => Buffer.from(text, "utf8");
