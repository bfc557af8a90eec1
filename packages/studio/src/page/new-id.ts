/** Returns a random id. `crypto.randomUUID` is missing on pages that are served over plain HTTP to another machine. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
