import type { DecisionEvidence, DecisionOffers } from './decision-evidence.ts'
import type { ErrorCode } from './errors.ts'
import { isRecord } from './guards.ts'
import type { Preview, ShownPreview } from './preview.ts'
import type { QuestionTerms } from './question-terms.ts'

/** The tokens of a whole turn, named as in the AI SDK. */
export interface Usage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly totalTokens: number
  /** Included in `outputTokens`. */
  readonly reasoningTokens?: number
  /** Included in `inputTokens`. */
  readonly cachedInputTokens?: number
}

/** A passage of the reply that the model quotes from a source. */
export interface Citation {
  readonly startIndex?: number
  readonly endIndex?: number
  readonly uri?: string
  readonly title?: string
  readonly license?: string
}

/** Why a turn failed. Contains nothing confidential. */
export interface TurnError {
  readonly code: ErrorCode
  readonly message: string
  readonly retryAfterSeconds?: number
}

/** The finish reasons that all supported clients accept. They throw on any other value. */
export type FinishReason = 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'other'

/** The metadata of an assistant message. */
export interface MessageMetadata {
  readonly usage?: Usage
  readonly modelVersion?: string
  readonly citations?: readonly Citation[]
  readonly error?: TurnError
  /** How much audio of the reply was produced. */
  readonly audio?: AudioCount
  /**
   * The user stopped the turn, and the message is incomplete. It is `false` if the message was stopped and has continued since, because
   * an approval in it was decided.
   */
  readonly stopped?: boolean
  /**
   * Why the reply is incomplete. Absent if the model has completed it, and `stop` if the message was incomplete or had failed and has
   * continued since.
   */
  readonly finishReason?: FinishReason
}

/** The amount of audio of a message. */
export interface AudioCount {
  readonly chunks: number
  readonly bytes: number
  readonly seconds: number
  readonly sampleRate: number
}

/** The state of an approval that clients see. */
type ApprovalPhase = 'requested' | 'approved' | 'denied' | 'expired' | 'cancelled' | 'unknown'

export const STEP_KINDS = ['sequence', 'loop', 'parallel', 'workflow'] as const

/** The progress of a `SequentialAgent`, `LoopAgent`, `ParallelAgent` or `Workflow`. */
export interface StepProgress {
  /** The name of the agent or workflow. */
  readonly agent: string
  readonly kind: (typeof STEP_KINDS)[number]
  /** The iteration of a loop, from 1. */
  readonly iteration?: number
  /** The limit of iterations of a loop, if it has one. */
  readonly maxIterations?: number
  /** The sub-agents or nodes, in order. `waiting` means that a call waits for a decision or for a result from outside. `stopped`: it ran when the turn ended. */
  readonly steps: readonly { readonly name: string; readonly state: StepState }[]
  /** The edges between the nodes of a workflow, by their names, each with its route. Absent if there are more than 64, and for agents. */
  readonly edges?: readonly StepEdge[]
}

/** An edge of a workflow. `route` is absent if the edge is always followed, or if no other route matches. */
export interface StepEdge {
  readonly from: string
  readonly to: string
  readonly route?: string
}

export type StepState = 'pending' | 'running' | 'waiting' | 'done' | 'stopped'

/** The `data-*` parts of a message, by name. */
export interface DataParts {
  /** An approval: what people need to know to decide, and its outcome. The id of the part is the id of the approval. */
  readonly approval: QuestionTerms &
    DecisionEvidence &
    DecisionOffers & {
      readonly approvalId: string
      readonly toolCallId: string
      readonly state: ApprovalPhase
      readonly hint?: string
      readonly title?: string
      readonly severity?: 'low' | 'medium' | 'high'
      /** Whether a value could mislead the person who decides. The severity is then one level above the policy's. */
      readonly misleading?: true
      readonly icon?: string
      readonly payload?: unknown
      /** When the approval expires, in ms since 1970. */
      readonly deadline?: number
      /** How many people must approve. */
      readonly approvers?: number
      readonly reason?: string
      /** The arguments that ran instead of the original ones. */
      readonly editedArgs?: Readonly<Record<string, unknown>>
      /** The approver's response to the `payload` of the tool. */
      readonly approvedPayload?: unknown
      /** Whether the policy gives a preview of the call. */
      readonly hasPreview?: true
      /** The preview at the time of the request. `GET /approvals/:id` has the current one. */
      readonly preview?: ShownPreview
      /** The names of the agents that lead to the call, if it was made inside an agent that is used as a tool. */
      readonly path?: readonly string[]
      /** When the call ended, or was denied, in ms since 1970. */
      readonly at?: number
      /** Who approved or denied: the owner of the chat (`own`), and the ids of other principals. */
      readonly by?: { readonly own: boolean; readonly others: readonly string[] }
      /** Whether an approved call succeeded. A call fails if its tool throws or if its result reports a failure. */
      readonly outcome?: 'succeeded' | 'failed'
      /** What the call did, as the policy describes it. */
      readonly receipt?: Preview
    }
  /** The approval that the user message decided. The agent continues in the message with the call. */
  readonly decision: {
    readonly approvalId: string
    readonly toolCallId: string
    readonly approved: boolean
  }
  /** A browser tool call that the client may run: it needs no approval, or is approved. */
  readonly 'browser-call': { readonly toolCallId: string }
  /** A call whose next result is not final: an agent that waits for a person, or a long-running call that the application completes. Transient. */
  readonly preliminary: { readonly toolCallId: string }
  /** The agent that writes the following parts. */
  readonly agent: { readonly name: string }
  readonly 'agent-transfer': { readonly to: string }
  readonly 'executable-code': { readonly language: string; readonly code: string }
  readonly 'code-execution-result': { readonly outcome: string; readonly output: string }
  /** Search queries, and the passages that sources support. The sources themselves are source parts. */
  readonly grounding: {
    readonly queries: readonly string[]
    readonly supports: readonly {
      readonly text: string
      readonly startIndex: number
      readonly endIndex: number
      readonly sourceIds: readonly string[]
    }[]
    /** HTML that Google's terms require to be shown with grounded replies. Render it in a sandbox. */
    readonly searchEntryPoint?: string
  }
  readonly 'state-delta': { readonly delta: Readonly<Record<string, unknown>> }
  /** The artifacts that the agent saved: file name → version. */
  readonly 'artifact-delta': { readonly artifacts: Readonly<Record<string, number>> }
  /** The result of a workflow node without text. */
  readonly output: { readonly value: unknown }
  /** The progress of an agent that runs its sub-agents as steps. Each run of the agent has one part, which is updated. */
  readonly steps: StepProgress
  /** Raw audio. Transient. */
  readonly pcm: {
    readonly content: string
    readonly sampleRate: number
    readonly channels: 1
    readonly bitDepth: 16
  }
  /** The transcript of the user's speech. Transient. */
  readonly 'input-transcription': { readonly text: string; readonly finished: boolean }
}

/** A part of a message, in the shape of the AI SDK. */
export type MessagePart =
  | { type: 'step-start' }
  | { type: 'text'; text: string; state?: 'streaming' | 'done' }
  | { type: 'reasoning'; id: string; text: string; state?: 'streaming' | 'done' }
  | { type: 'file'; url: string; mediaType: string; filename?: string }
  | { type: 'source-url'; sourceId: string; url: string; title?: string }
  | { type: 'source-document'; sourceId: string; mediaType: string; title: string }
  | { type: `data-${string}`; id?: string; data: unknown }
  | ToolPart

/** A tool call in a message, in its current state. */
export type ToolPart = { type: `tool-${string}`; toolCallId: string } & (
  | { state: 'input-streaming' }
  | { state: 'input-available'; input: unknown }
  | { state: 'approval-requested'; input: unknown; approval: { id: string } }
  | { state: 'approval-responded'; input: unknown; approval: ToolApproval }
  | { state: 'output-available'; input: unknown; output: unknown; approval?: ToolApproval }
  | { state: 'output-error'; input: unknown; errorText: string; approval?: ToolApproval }
  | { state: 'output-denied'; input: unknown; approval: ToolApproval }
)

/** A decision, in the shape of the AI SDK. */
export interface ToolApproval {
  id: string
  approved: boolean
  reason?: string
}

/** A message, in the shape of the AI SDK's `UIMessage`. */
export interface Message {
  id: string
  role: 'user' | 'assistant'
  metadata?: MessageMetadata
  parts: MessagePart[]
}

/** The tool name of ADK's confirmation requests. Clients of the Python server send decisions under it. */
export const CONFIRMATION_TOOL = 'adk_request_confirmation'

/** The failure of a call, as its result reports it. */
export interface ReportedFailure {
  /** The tool's message, if it has one. */
  readonly reason?: string
}

/**
 * Returns the failure that the result of a tool reports: `success: false`, `status: 'error'` (the form in ADK's
 * documentation), or the `isError: true` of an MCP tool. Returns undefined for any other result.
 */
export function readReportedFailure(output: unknown): ReportedFailure | undefined {
  if (!isRecord(output)) return undefined
  const { success, status, error, error_message: errorMessage, message } = output
  if (output['isError'] === true && Array.isArray(output['content']))
    return toReportedFailure(readText(output['content']))
  if (success !== false && status !== 'error') return undefined
  return toReportedFailure([error, errorMessage, message].find((text) => typeof text === 'string'))
}

/** Returns the first text in the content of an MCP result. */
function readText(content: readonly unknown[]): unknown {
  return content.flatMap((part) =>
    isRecord(part) && part['type'] === 'text' ? part['text'] : [],
  )[0]
}

export function toReportedFailure(reason: unknown): ReportedFailure {
  return typeof reason === 'string' && reason !== '' ? { reason } : {}
}
