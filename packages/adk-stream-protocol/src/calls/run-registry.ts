import type { InvocationContext, Session } from '@google/adk'

import { chatOf } from '../agent/tool-call.ts'
import { type AppChatRef, toChatKey } from '../shared/chat-ref.ts'
import type { RunCause } from './run-state.ts'
import { RunState } from './run-state.ts'

/** Finds the run that a callback of ADK belongs to. */
export class RunRegistry {
  readonly #byChat = new Map<string, RunState>()
  /** Runs by ADK invocation id. The tools of an abandoned run may still end while its chat has a new run. */
  readonly #byInvocation = new Map<string, RunState>()
  /** Runs of agents that are used as tools, by their sessions. */
  readonly #nested = new WeakMap<Session, RunState>()

  /** Registers a run of a chat. The caller must close it. */
  open(chat: AppChatRef, messageId: string, cause: RunCause): RunState {
    const run = new RunState(messageId, cause)
    this.#byChat.set(toChatKey(chat), run)
    return run
  }

  close(chat: AppChatRef, run: RunState): void {
    if (this.#byChat.get(toChatKey(chat)) === run) this.#byChat.delete(toChatKey(chat))
    this.closeNested(run)
  }

  /** Registers the run of an agent that is used as a tool. The caller must close it. */
  openNested(session: Session, run: RunState): void {
    this.#nested.set(session, run)
  }

  closeNested(run: RunState): void {
    for (const [id, bound] of this.#byInvocation) if (bound === run) this.#byInvocation.delete(id)
  }

  /** Returns undefined for runs of another program. */
  find({ session, invocationId }: InvocationContext): RunState | undefined {
    const run =
      this.#nested.get(session) ??
      this.#byInvocation.get(invocationId) ??
      this.#byChat.get(toChatKey(chatOf(session)))
    if (run) this.#byInvocation.set(invocationId, run)
    return run
  }

  /** Like `find`, for a run that had a callback before. */
  findByInvocation(invocationId: string): RunState | undefined {
    return this.#byInvocation.get(invocationId)
  }
}
