import type { KeyboardEvent } from 'react'

/** Returns whether an input method handles this key. Enter then accepts the Japanese text and must not send the message. */
export function isComposing(event: KeyboardEvent): boolean {
  // Safari ends the composition before it reports the key. Only the key code 229 shows it.
  // oxlint-disable-next-line typescript/no-deprecated
  return event.nativeEvent.isComposing || event.keyCode === 229
}
