import type { Approval, Refusal } from '../../approvals/approval.ts'
import type { Decision } from '../../approvals/next-approval.ts'
import type { OutputResponse } from '../../protocol/read-responses.ts'
import type { ChatRef } from '../../shared/chat-ref.ts'
import type { Turn } from '../../turns/turn.ts'

/**
 * Runs of agents that stay open in their chats between messages. A chat has at most one, in one process. A run executes its calls itself,
 * continues its messages after decisions, and streams each message in a turn.
 */
export interface ChatRuns extends OpenMessages, OpenCalls, Watching {
  /** The number of open runs of this process. */
  readonly size: number
  /** Whether this process has the run of a chat, or is opening one. */
  isTalking(chat: ChatRef): boolean
  /** Ends the run of a chat, in any process. Its messages stay stored. */
  leave(chat: ChatRef): Promise<void>
  /**
   * Does work while no process has a run of a chat, or opens one. Returns false at once, without the work, if one does. The work must not
   * wait for a run.
   */
  whileNone(chat: ChatRef, work: () => Promise<void>): Promise<boolean>
  /** Ends the run of a chat that another process has taken over. */
  closeLost(chat: ChatRef): void
  /** Hands idle runs over to other processes. Returns true if none is left. */
  closeIdle(): boolean
  /** Ends all runs of this process and opens no more. */
  close(): Promise<void>
}

/** The messages of open runs. */
interface OpenMessages {
  /** Whether turns stay open while their calls wait for people. */
  readonly keepTurnsOpen: boolean
  /** Whether the turn of a message is being opened in this process. */
  isOpening(chat: ChatRef): boolean
  /** Resolves when the turn of the newest message of a chat is open in this process. */
  whenOpened(chat: ChatRef): Promise<void>
  /** Returns the turn in which the run of this process continues a message. */
  turnOf(chat: ChatRef, messageId: string): Promise<Turn | undefined>
  /** Whether calls of a message run in this process. */
  hasRunningCalls(chat: ChatRef, messageId: string): boolean
  /** Records decisions while the run of this process ends no turn, and gives it the outputs for its calls. */
  respond<Decided extends RecordedDecisions>(
    chat: ChatRef,
    outputs: readonly OutputResponse[],
    record: () => Promise<Decided>,
  ): Promise<RecordedResponses<Decided>>
  /** Leaves responses that are recorded to the runs of other processes. */
  leaveToOthers(chat: ChatRef, responses: LeftResponses): Promise<OwnResponses>
}

/** The calls of open runs. */
interface OpenCalls {
  /** Whether this process has a run of a chat, which executes the calls of the chat. */
  has(chat: ChatRef): boolean
  /** Finds a call that a run of this process continues. */
  findCall(
    chat: ChatRef,
    toolCallId: string,
  ): { readonly messageId: string | undefined } | undefined
  /** Whether a run, here or in another process, continues the call of an approval. Does not wait for one that is being opened. */
  continues(approval: Approval): Promise<boolean>
  /** Whether this process may start the call of an approval: no run of another one continues it. */
  mayStart(approval: Approval): Promise<boolean>
  /** Records a decision about a call of a run of this process. Returns undefined if it has no such call. */
  decide(approval: Approval, decision: Decision): Promise<Approval | Refusal | undefined>
  /** An approval has changed. Returns whether a run of this process continues its call. */
  approvalChanged(approval: Approval): boolean
  /** Leaves a decided call to the run that continues it, here or in another process. Returns false if there is none, or it does not react. */
  leaveCall(approval: Approval): Promise<boolean>
  /** Gives the output of a client to the run that waits for it, in any process. Resolves when it is stored, with false if there is none. */
  takeOutput(chat: ChatRef, output: OutputResponse): Promise<boolean>
  /** Whether a call of a run of this process waits for a decision. */
  readonly asks: boolean
}

/** Clients of this process that receive the turns of a chat without a request for each. */
interface Watching {
  /** Whether there are any. */
  readonly listened: boolean
  hasListeners(chat: ChatRef): boolean
  /** Sends them a turn. */
  show(chat: ChatRef, turn: Turn): void
}

export interface RecordedDecisions {
  readonly messageId: string
  /** The approvals that were decided. */
  readonly taken: readonly Approval[]
}

export interface RecordedResponses<Decided> {
  readonly decided: Decided
  /** The outputs that no run of this process took. */
  readonly outputs: readonly OutputResponse[]
  /** The turn in which the run continues. */
  readonly turn: Turn | undefined
}

export interface LeftResponses extends RecordedDecisions {
  readonly outputs: readonly OutputResponse[]
}

/** The responses that are left for this process. */
export interface OwnResponses {
  readonly taken: readonly Approval[]
  readonly outputs: readonly OutputResponse[]
  /**
   * Returns the turn of the other process that took the rest, to be read here. If there is none, waits until the conversation shows the
   * outcome. Returns undefined at once if no other process took anything.
   */
  readonly follow: () => Promise<Turn | undefined>
}
