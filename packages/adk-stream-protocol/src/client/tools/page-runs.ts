import type { ToolOutputGiven } from '../sync/attachable-chat.ts'
import { claimCall } from './claim-call.ts'

/** A call that a page is to run. */
export interface PageCall {
  readonly tool: string
  readonly toolCallId: string
  readonly run: () => unknown
  /** Whether it is still to be run, for a page that had to wait for its turn. */
  readonly isWanted: () => Promise<boolean>
}

/** The calls that a page runs, by transport: a chat that is left and opened again finds what it began. */
export class PageRuns {
  static readonly #all = new WeakMap<object, PageRuns>()
  readonly #outputs = new Map<string, Promise<ToolOutputGiven | undefined>>()

  static of(transport: object): PageRuns {
    const known = this.#all.get(transport) ?? new PageRuns()
    this.#all.set(transport, known)
    return known
  }

  /** Runs a call, once; gives its output, or nothing when it was not to be run here after all. */
  run(call: PageCall): Promise<ToolOutputGiven | undefined> {
    const known = this.#outputs.get(call.toolCallId)
    if (known) return known
    const output = this.#begin(call)
    this.#outputs.set(call.toolCallId, output)
    return output
  }

  async #begin(call: PageCall): Promise<ToolOutputGiven | undefined> {
    const { how, release } = await claimCall(call.toolCallId)
    if (how === 'first' || (await call.isWanted())) return runCall(call)
    release()
    this.#outputs.delete(call.toolCallId)
    return undefined
  }
}

/** Runs a call; what it throws is its output, as an error. */
export async function runCall({
  tool,
  toolCallId,
  run,
}: Omit<PageCall, 'isWanted'>): Promise<ToolOutputGiven> {
  try {
    return { tool, toolCallId, output: (await run()) ?? null }
  } catch (error) {
    const errorText = error instanceof Error ? error.message : String(error)
    return { state: 'output-error', tool, toolCallId, errorText }
  }
}
