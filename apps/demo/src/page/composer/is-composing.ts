import type { KeyboardEvent } from 'react'

/** Whether this key belongs to an input method: Enter then accepts the Japanese text and must not send it. */
export function isComposing(event: KeyboardEvent): boolean {
  // Safari ends the composition before it reports the key; 229 is all that is left to tell it.
  // oxlint-disable-next-line typescript/no-deprecated
  return event.nativeEvent.isComposing || event.keyCode === 229
}
