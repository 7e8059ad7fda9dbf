/** A phone number in E.164: a plus sign and 2 to 15 digits, the first of them no zero; nothing is trimmed (SND-25). */
export const E164 = /^\+[1-9]\d{1,14}$/;
