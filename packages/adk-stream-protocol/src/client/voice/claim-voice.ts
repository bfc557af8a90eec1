import { defer } from '../../shared/async.ts'

/**
 * Claims the voice of a chat for this page: a model cannot listen to two microphones. Another page of the browser that claims it later
 * takes it over, and `onTaken` is called here. Returns a function that ends the claim.
 */
export function claimVoice(chatId: string, onTaken: () => void): () => void {
  const { navigator } = globalThis as { navigator?: { readonly locks?: LockManager } }
  let isHeld = true
  const released = defer()
  navigator?.locks
    ?.request(`adk-voice/${chatId}`, { steal: true }, () => released.promise)
    .catch((error: unknown) => {
      // Another error: the page may be forbidden to use locks.
      if (isHeld && error instanceof Error && error.name === 'AbortError') onTaken()
    })
  return () => {
    isHeld = false
    released.resolve()
  }
}
