/**
 * Whether this tab is the one that runs a call. The claim holds as long as the tab lives: a second tab that looks on does not run the
 * call again, and a tab that is gone leaves it to the next.
 */
export function claimCall(toolCallId: string): Promise<boolean> {
  const { navigator } = globalThis as { navigator?: { readonly locks?: LockManager } }
  // Pages that did not come over HTTPS or from this machine have no locks.
  const locks = navigator?.locks
  if (!locks) return Promise.resolve(true)
  return new Promise((resolve) => {
    locks
      .request(`adk-tool-call/${toolCallId}`, { ifAvailable: true }, (lock) => {
        resolve(lock !== null)
        return lock && new Promise(() => undefined)
      })
      // Where locks are forbidden, there are none.
      .catch(() => resolve(true))
  })
}
