import type { ApprovalInWords } from '../../../approvals/describe-approval.ts'
import type { ShownPreview } from '../../../protocol/preview.ts'

/** A message of AG-UI 1.0, in the profile that clients from 0.0.54 accept. */
export type RunMessage =
  | {
      readonly id: string
      readonly role: 'user'
      readonly content: string | readonly UserContent[]
    }
  | {
      readonly id: string
      readonly role: 'assistant'
      content?: string
      readonly name?: string
      toolCalls?: RunToolCall[]
    }
  | { readonly id: string; readonly role: 'reasoning'; content: string }
  | {
      readonly id: string
      readonly role: 'tool'
      readonly toolCallId: string
      readonly content: string
    }
  | {
      readonly id: string
      readonly role: 'activity'
      readonly activityType: string
      readonly content: Readonly<Record<string, unknown>>
    }

interface RunToolCall {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string; readonly arguments: string }
}

/** A part of a user message. */
export type UserContent =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'image' | 'audio' | 'video' | 'document'
      readonly source: { readonly type: 'data'; readonly value: string; readonly mimeType: string }
    }

/** Something that a run waits for. The next run carries the answer. */
export interface Interrupt {
  readonly id: string
  readonly reason: string
  readonly message: string
  readonly toolCallId?: string
  readonly responseSchema?: Readonly<Record<string, unknown>>
  readonly expiresAt?: string
  readonly metadata: Readonly<Record<string, unknown>>
}

/** An interrupt, and what a card says beside its message. */
export interface OpenInterrupt {
  readonly interrupt: Interrupt
  readonly words: ApprovalInWords
  readonly preview: ShownPreview | undefined
  /** The address that the person is asked to open. */
  readonly link: Link | undefined
}

interface Link {
  readonly url: string
  readonly host: string
}

export interface TokenUsage {
  readonly provider: string
  readonly model?: string
  readonly inputTokens: number
  readonly outputTokens: number
  readonly totalTokens: number
  readonly reasoningTokens?: number
  readonly cachedInputTokens?: number
}

/** How a run ended. Clients before 1.0 only know `interrupt` and `success` without calls. */
export type RunOutcome =
  | { readonly type: 'success'; readonly pendingToolCallIds?: readonly string[] }
  | { readonly type: 'interrupt'; readonly interrupts: readonly Interrupt[] }
  | { readonly type: 'cancelled' }

/** The events of AG-UI that the server writes. An optional field is absent, never null. */
export type RunEvent =
  | {
      readonly type: 'RUN_STARTED'
      readonly threadId: string
      readonly runId: string
      readonly protocolVersion?: string
    }
  | {
      readonly type: 'RUN_FINISHED'
      readonly threadId: string
      readonly runId: string
      readonly outcome?: RunOutcome
      readonly usage?: readonly TokenUsage[]
      readonly metadata?: Readonly<Record<string, unknown>>
    }
  | { readonly type: 'RUN_ERROR'; readonly message: string; readonly code: string }
  | {
      readonly type: 'TEXT_MESSAGE_START'
      readonly messageId: string
      readonly role: 'assistant'
      readonly name?: string
    }
  | {
      readonly type: 'TEXT_MESSAGE_CONTENT' | 'REASONING_MESSAGE_CONTENT'
      readonly messageId: string
      readonly delta: string
    }
  | {
      readonly type:
        | 'TEXT_MESSAGE_END'
        | 'REASONING_START'
        | 'REASONING_MESSAGE_END'
        | 'REASONING_END'
      readonly messageId: string
    }
  | {
      readonly type: 'REASONING_MESSAGE_START'
      readonly messageId: string
      readonly role: 'reasoning'
    }
  | {
      readonly type: 'TOOL_CALL_START'
      readonly toolCallId: string
      readonly toolCallName: string
      readonly parentMessageId: string
    }
  | { readonly type: 'TOOL_CALL_ARGS'; readonly toolCallId: string; readonly delta: string }
  | { readonly type: 'TOOL_CALL_END'; readonly toolCallId: string }
  | {
      readonly type: 'TOOL_CALL_RESULT'
      readonly messageId: string
      readonly toolCallId: string
      readonly content: string
      readonly role: 'tool'
    }
  | { readonly type: 'STATE_SNAPSHOT'; readonly snapshot: Readonly<Record<string, unknown>> }
  | {
      readonly type: 'STATE_DELTA'
      readonly delta: readonly {
        readonly op: 'add'
        readonly path: string
        readonly value: unknown
      }[]
    }
  | { readonly type: 'MESSAGES_SNAPSHOT'; readonly messages: readonly RunMessage[] }
  | {
      readonly type: 'ACTIVITY_SNAPSHOT'
      readonly messageId: string
      readonly activityType: string
      readonly content: Readonly<Record<string, unknown>>
      readonly replace: true
    }
  | { readonly type: 'CUSTOM'; readonly name: string; readonly value: unknown }
