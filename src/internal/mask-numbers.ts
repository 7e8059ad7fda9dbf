/** Masks phone numbers in texts that people and logs see. */

/** Seven or more digits, also with spaces, dots, dashes or brackets between them. */
export const PHONE_NUMBER = /\+?\d(?:[\s().-]{0,3}\d){6,}/g;

/** Every phone number keeps its last two digits. */
export function maskNumbers(message: string): string {
  return message.replace(PHONE_NUMBER, (number) => `…${number.slice(-2)}`);
}
