import type { BaseAgent } from '@google/adk'

import { toError } from '../../agent/adk-workarounds/guard-tool.ts'
import { toEndingNotes } from '../../agent/events/approval-notes.ts'
import type { EventNotes } from '../../agent/events/event-notes.ts'
import type { RootRun, RunCause, StoppedRun } from '../run-state.ts'
import { RunState } from '../run-state.ts'

/** Where the run of an agent that is used as a tool belongs. */
export interface NestedPlace {
  readonly agent: BaseAgent
  /** The names of the agents from the one that called first to this one. */
  readonly path: readonly string[]
  /** Whether all calls that lead to this agent can wait. */
  readonly canWait: boolean
  readonly root: RootRun
  /** The call that runs the agent. */
  readonly toolCallId: string
  /** The session of the agent. */
  readonly sessionId: string
}

/** The run of an agent that is used as a tool. */
export class NestedRun extends RunState {
  readonly place: NestedPlace

  constructor(messageId: string, cause: RunCause, place: NestedPlace) {
    super(messageId, cause)
    this.place = place
  }

  override get path(): readonly string[] {
    return this.place.path
  }

  override get chatRun(): RunState {
    return this.place.root.run
  }

  override rootOf(): RootRun {
    return this.place.root
  }

  /**
   * AP825: ends the run of the chat, because the caller of the agent would take the error for the result, although calls inside may have
   * run. Another attempt continues the agent.
   */
  override markUnstored(error: unknown): void {
    this.markLost(toError(error))
  }

  override describeStopped(): StoppedRun {
    const results = new Map<string, EventNotes>()
    for (const run of this.all)
      for (const [id, { name, response }] of run.results) {
        const note = run.decided.get(id)
        if (note && run instanceof NestedRun)
          results.set(id, toEndingNotes(run.place.sessionId, { id, name, response }, note))
      }
    return { call: { id: this.place.toolCallId, name: this.place.agent.name }, results }
  }
}
