import type { ErrorCode } from './errors.ts'

/** Tokens of a whole turn, in the AI SDK's words. */
export interface Usage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly totalTokens: number
  /** Part of `outputTokens`. */
  readonly reasoningTokens?: number
  /** Part of `inputTokens`. */
  readonly cachedInputTokens?: number
}

/** A passage of the answer that the model took from somewhere. */
export interface Citation {
  readonly startIndex?: number
  readonly endIndex?: number
  readonly uri?: string
  readonly title?: string
  readonly license?: string
}

/** Why a turn ended without an answer, as far as a stranger may know. */
export interface TurnError {
  readonly code: ErrorCode
  readonly message: string
  readonly retryAfterSeconds?: number
}

/** What the bridge tells about an assistant message besides its parts. */
export interface MessageMetadata {
  readonly usage?: Usage
  readonly modelVersion?: string
  readonly citations?: readonly Citation[]
  readonly error?: TurnError
  /** What was spoken of it. */
  readonly audio?: AudioCount
  /** The person stopped the turn; what is there is all there will be. */
  readonly stopped?: true
}

/** How much of a message was spoken. */
export interface AudioCount {
  readonly chunks: number
  readonly bytes: number
  readonly seconds: number
  readonly sampleRate: number
}

/** How far the approval of a call has come, as a client may see it. */
type ApprovalPhase = 'requested' | 'approved' | 'denied' | 'expired' | 'cancelled' | 'unknown'

/** The `data-*` parts of a message, by name. */
export interface DataParts {
  /** What a person should know before deciding a call, and what became of it. Its part has the approval's id. */
  readonly approval: {
    readonly approvalId: string
    readonly toolCallId: string
    readonly state: ApprovalPhase
    readonly hint?: string
    readonly title?: string
    readonly severity?: 'low' | 'medium' | 'high'
    readonly icon?: string
    readonly payload?: unknown
    /** When it expires, in ms since 1970. */
    readonly deadline?: number
    /** How many people must approve. */
    readonly approvers?: number
    readonly reason?: string
    /** The arguments that ran in place of those shown. */
    readonly editedArgs?: Readonly<Record<string, unknown>>
    /** What the approver answered to the tool's `payload`. */
    readonly approvedPayload?: unknown
  }
  /** A call waits for the client, and may run there; transient. */
  readonly 'browser-call': { readonly toolCallId: string }
  /** Another agent speaks from here on. */
  readonly agent: { readonly name: string }
  readonly 'agent-transfer': { readonly to: string }
  readonly 'executable-code': { readonly language: string; readonly code: string }
  readonly 'code-execution-result': { readonly outcome: string; readonly output: string }
  /** Search queries and the passages they support; the sources themselves are source parts. */
  readonly grounding: {
    readonly queries: readonly string[]
    readonly supports: readonly {
      readonly text: string
      readonly startIndex: number
      readonly endIndex: number
      readonly sourceIds: readonly string[]
    }[]
    /** HTML that Google's terms ask to show with grounded answers. Render it sandboxed. */
    readonly searchEntryPoint?: string
  }
  readonly 'state-delta': { readonly delta: Readonly<Record<string, unknown>> }
  /** File name → version of what the agent saved. */
  readonly 'artifact-delta': { readonly artifacts: Readonly<Record<string, number>> }
  /** The result of a workflow node that says nothing in prose. */
  readonly output: { readonly value: unknown }
  /** Raw speech; transient. */
  readonly pcm: {
    readonly content: string
    readonly sampleRate: number
    readonly channels: 1
    readonly bitDepth: 16
  }
  /** What the person was heard to say; transient. */
  readonly 'input-transcription': { readonly text: string; readonly finished: boolean }
}

/** A part of a message as the AI SDK keeps it. */
export type MessagePart =
  | { type: 'step-start' }
  | { type: 'text'; text: string; state?: 'streaming' | 'done' }
  | { type: 'reasoning'; id: string; text: string; state?: 'streaming' | 'done' }
  | { type: 'file'; url: string; mediaType: string; filename?: string }
  | { type: 'source-url'; sourceId: string; url: string; title?: string }
  | { type: 'source-document'; sourceId: string; mediaType: string; title: string }
  | { type: `data-${string}`; id?: string; data: unknown }
  | ToolPart

/** A tool call within a message, in the state it has reached. */
export type ToolPart = { type: `tool-${string}`; toolCallId: string } & (
  | { state: 'input-streaming' }
  | { state: 'input-available'; input: unknown }
  | { state: 'approval-requested'; input: unknown; approval: { id: string } }
  | { state: 'output-available'; input: unknown; output: unknown; approval?: ToolApproval }
  | { state: 'output-error'; input: unknown; errorText: string; approval?: ToolApproval }
  | { state: 'output-denied'; input: unknown; approval: ToolApproval }
)

/** A decision as the AI SDK keeps it with the call. */
export interface ToolApproval {
  id: string
  approved: boolean
  reason?: string
}

/** A message of a conversation, in the shape of the AI SDK's `UIMessage`. */
export interface Message {
  id: string
  role: 'user' | 'assistant'
  metadata?: MessageMetadata
  parts: MessagePart[]
}

/** The name under which ADK asks a person, and under which clients of the earlier system answer. */
export const CONFIRMATION_TOOL = 'adk_request_confirmation'
