import type { ToolOutput } from '../sync/attachable-chat.ts'

/** A tool call that this page is to run. */
export interface PageCall {
  readonly tool: string
  readonly toolCallId: string
  readonly run: () => unknown
  /** Whether the call is still pending. Asked if another tab was running it. */
  readonly isPending: () => Promise<boolean>
}

/** The calls that a page runs, by transport: a chat that is closed and opened again finds the calls that it started. */
export class PageRuns {
  static readonly #all = new WeakMap<object, PageRuns>()
  readonly #outputs = new Map<string, Promise<ToolOutput | undefined>>()

  static of(transport: object): PageRuns {
    const known = this.#all.get(transport) ?? new PageRuns()
    this.#all.set(transport, known)
    return known
  }

  /** Runs a call once. Resolves with its output, or with undefined if another tab ran it. */
  run(call: PageCall): Promise<ToolOutput | undefined> {
    const known = this.#outputs.get(call.toolCallId)
    if (known) return known
    const output = this.#start(call)
    this.#outputs.set(call.toolCallId, output)
    return output
  }

  async #start(call: PageCall): Promise<ToolOutput | undefined> {
    const { how, release } = await claimCall(call.toolCallId)
    if (how === 'first' || (await call.isPending())) return runCall(call)
    release()
    this.#outputs.delete(call.toolCallId)
    return undefined
  }
}

/** Runs a call. If it throws, the output is the error. */
export async function runCall({
  tool,
  toolCallId,
  run,
}: Omit<PageCall, 'isPending'>): Promise<ToolOutput> {
  try {
    return { tool, toolCallId, output: (await run()) ?? null }
  } catch (error) {
    const errorText = error instanceof Error ? error.message : String(error)
    return { state: 'output-error', tool, toolCallId, errorText }
  }
}

/** Replaces an output that JSON cannot represent by an error, so that the model gets a result. */
export function toSendable(given: ToolOutput): ToolOutput {
  if (given.state === 'output-error') return given
  const { tool, toolCallId } = given
  try {
    // JSON.stringify returns undefined for `undefined` and for functions.
    return JSON.stringify(given.output) === undefined ? { ...given, output: null } : given
  } catch {
    const errorText = `The output of ${tool} cannot be written as JSON.`
    return { tool, toolCallId, state: 'output-error', errorText }
  }
}

/** `first`: no other tab had claimed the call. `inherited`: another tab had claimed it and is gone. */
type Claim = { readonly how: 'first' | 'inherited'; readonly release: () => void }

/**
 * Resolves when this tab may run a call. The claim lasts until the tab is closed or `release` is called, so that a second tab does not
 * run the call too, and takes over if this one is gone.
 */
async function claimCall(toolCallId: string): Promise<Claim> {
  const { navigator } = globalThis as { navigator?: { readonly locks?: LockManager } }
  // There are no locks on pages that are served over HTTP from another machine.
  const locks = navigator?.locks
  if (!locks) return NO_LOCKS
  const name = `adk-tool-call/${toolCallId}`
  try {
    const release = await acquire(locks, name, { ifAvailable: true })
    if (release) return { how: 'first', release }
    return { how: 'inherited', release: (await acquire(locks, name, {})) ?? NO_LOCKS.release }
  } catch {
    // The page may be forbidden to use locks.
    return NO_LOCKS
  }
}

const NO_LOCKS: Claim = { how: 'first', release: () => undefined }

/** Resolves with a function that releases the lock, or with undefined if the lock is not available. */
function acquire(
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
