/** Masks phone numbers in texts that people and logs see. */

/** Every run of seven or more digits, also with spaces, dots, dashes or brackets between them, keeps its last two. */
export function maskNumbers(message: string): string {
  return message.replace(/\+?\d(?:[\s().-]{0,3}\d){6,}/g, (number) => `…${number.slice(-2)}`);
}
