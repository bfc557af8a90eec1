/** How a call became this tab's: it was the first to ask, or it has waited and the tab that had it is gone. */
export type Claim = { readonly how: 'first' | 'inherited'; readonly release: () => void }

/**
 * Resolves when this tab is the one that runs a call. The claim holds as long as the tab lives, or until it is given back: a second
 * tab that looks on does not run the call again, and a tab that is gone leaves it to the next.
 */
export async function claimCall(toolCallId: string): Promise<Claim> {
  const { navigator } = globalThis as { navigator?: { readonly locks?: LockManager } }
  // Pages that did not come over HTTPS or from this machine have no locks.
  const locks = navigator?.locks
  if (!locks) return FREE
  const name = `adk-tool-call/${toolCallId}`
  try {
    const release = await hold(locks, name, { ifAvailable: true })
    if (release) return { how: 'first', release }
    return { how: 'inherited', release: (await hold(locks, name, {})) ?? FREE.release }
  } catch {
    // Where locks are forbidden, there are none.
    return FREE
  }
}

const FREE: Claim = { how: 'first', release: () => undefined }

/** Resolves with what gives a lock back; with nothing where it was asked for at once, and is another's. */
function hold(
  locks: LockManager,
  name: string,
  options: LockOptions,
): Promise<(() => void) | undefined> {
  return new Promise((resolve, reject) => {
    locks
      .request(name, options, (lock) => {
        if (!lock) return resolve(undefined)
        return new Promise<void>((release) => resolve(release))
      })
      .catch(reject)
  })
}
