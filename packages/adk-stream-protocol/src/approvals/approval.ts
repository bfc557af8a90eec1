import type { Preview, ShownPreview } from '../protocol/preview.ts'
import type { QuestionTerms } from '../protocol/question-terms.ts'
import type { AppChatRef } from '../shared/chat-ref.ts'
import type { DecisionEvidence } from '../protocol/decision-evidence.ts'
import { isPriorDecision, pickEvidence } from '../protocol/decision-evidence.ts'
import type { FeatureFields, FeatureTerms, FeatureVote } from './feature-parts.ts'

/** A tool call that people approve or deny: an entry of the ledger. Only `state`, `votes`, `links`, `refusedInChat` and `version` change. */
export interface Approval extends FeatureFields {
  /** The id of ADK's confirmation request. It cannot be guessed. */
  readonly id: string
  readonly chat: AppChatRef
  /** The assistant message whose turn waits for the decision. */
  readonly messageId: string
  /**
   * The worker in which the call waits for the decision, because its live session made the call, or because an MCP server asked during the call.
   * Undefined if any worker may continue.
   */
  readonly waitingWorker?: string
  readonly toolCallId: string
  readonly toolName: string
  /** The arguments that people see when they decide. */
  readonly args: Readonly<Record<string, unknown>>
  /** Binds the decision to the call: SHA-256 over the canonical JSON of chat, call, tool and arguments. */
  readonly digest: string
  readonly terms: ApprovalTerms
  readonly requestedAt: number
  /** When the approval expires, by the clock of the store. */
  readonly deadline: number
  readonly votes: readonly Vote[]
  /** Whether a decision of a client of the chat was refused. A stock client keeps it, and sends it again with later messages. */
  readonly refusedInChat?: true
  readonly state: ApprovalState
  /** The number of transitions. Each transition is a compare-and-set on it. */
  readonly version: number
}

/** The fields of an approval that transitions change. */
export type MovedFields = Pick<
  Approval,
  'votes' | 'refusedInChat' | 'state' | 'version' | keyof FeatureFields
>

/**
 * The terms of an approval, as the policy set them when the call was made, or what a question asks for. The answer to a question is the
 * `payload` of its decision.
 */
export interface ApprovalTerms extends QuestionTerms, FeatureTerms {
  /** Set if only the server answers the question, when it has what the question asks for. A person can only decline it. */
  readonly answeredBy?: 'server'
  readonly hint?: string
  readonly title?: string
  readonly severity?: 'low' | 'medium' | 'high'
  readonly icon?: string
  /** The payload that the tool adds to its request. */
  readonly payload?: unknown
  /**
   * The steps of the approval, in order. Each step needs its number of approvals by different people before the next
   * step starts.
   */
  readonly chain: readonly ApprovalStep[]
  /** Whether the tool may run again with the same idempotency key if it is not known whether it ran. */
  readonly idempotent: boolean
  /** Whether the policy gives a preview, and whether an approval must name the one that the person saw. */
  readonly preview?: 'optional' | 'required'
  /** Whether the policy reads the result of the call, with `isFailure` or `receipt`. */
  readonly readsResult?: true
  /** Whether those who may see the approval see the message of the user that led to the call. */
  readonly showsUserText?: true
  /** That message as plain text, shortened. Absent if it had no text when the call was made. */
  readonly userText?: string
  /** Whether the arguments fitted the schema of the tool when the call was made. The policy does not set it. */
  readonly fitsSchema?: true
  /** What the MCP server claimed about the tool when the call was made. Absent for other tools. */
  readonly claims?: ToolClaims
  /** The names of the agents that lead to the call, if it was made inside an agent that is used as a tool. The policy does not set it. */
  readonly path?: readonly string[]
}

/** A step of an approval: how many people must approve, and who may. */
export interface ApprovalStep {
  /** How many different principals must approve. */
  readonly count: number
  /** The ids of principals who may decide. */
  readonly principals: readonly string[]
  readonly roles: readonly string[]
}

/** The approval of one person. There is no vote for a denial, because a single denial decides. */
export interface Vote extends DecisionEvidence, FeatureVote {
  readonly principalId: string
  readonly step: number
  readonly at: number
}

/** The state of an approval, with what is known about it. */
export type ApprovalState =
  | { readonly name: 'requested' }
  | {
      readonly name: 'approved'
      readonly at: number
      /** The arguments that run instead of `args`, if the approver edited them. */
      readonly editedArgs?: Readonly<Record<string, unknown>>
      /** The approver's response to the payload of the tool. */
      readonly payload?: unknown
      readonly reason?: string
    }
  | (DecisionEvidence & {
      readonly name: 'denied'
      readonly at: number
      readonly by: string
      readonly reason?: string
    })
  | { readonly name: 'expired'; readonly at: number }
  | { readonly name: 'cancelled'; readonly at: number; readonly reason: string }
  | {
      readonly name: 'executing'
      readonly at: number
      readonly worker: string
      readonly editedArgs?: Readonly<Record<string, unknown>>
      readonly payload?: unknown
    }
  | {
      readonly name: 'succeeded'
      readonly at: number
      readonly output: unknown
      /** What the call did, as the policy describes it. */
      readonly receipt?: Preview
      readonly editedArgs?: Readonly<Record<string, unknown>>
      readonly payload?: unknown
    }
  | {
      readonly name: 'failed'
      readonly at: number
      readonly error: string
      /** The result that reports the failure. Absent if the tool threw. */
      readonly output?: unknown
      readonly receipt?: Preview
      readonly editedArgs?: Readonly<Record<string, unknown>>
      readonly payload?: unknown
    }
  /** The process crashed, or its lease expired, while the tool was running. The call may or may not have taken effect. */
  | {
      readonly name: 'unknown'
      readonly at: number
      readonly editedArgs?: Readonly<Record<string, unknown>>
      readonly payload?: unknown
    }

/** The name of a state of an approval. */
export type ApprovalStateName = ApprovalState['name']

/** Returns how an approval was decided, if not in a form: by a message, or by an earlier decision for calls like this one. */
export function findEvidence({
  state,
  votes,
}: Pick<Approval, 'state' | 'votes'>): DecisionEvidence {
  return pickEvidence(state.name === 'denied' ? state : (votes.find(hasEvidence) ?? {}))
}

/** Whether an earlier decision decided an approval when it was requested, so that nobody was asked. */
export function wasUnasked(approval: Pick<Approval, 'state' | 'votes'>): boolean {
  return isPriorDecision(findEvidence(approval))
}

function hasEvidence(evidence: DecisionEvidence): boolean {
  return Object.keys(pickEvidence(evidence)).length > 0
}

/** Whether an approval was decided or has ended, so that its turn can resume. A running call is neither. */
export function isDecided({ state }: Approval): boolean {
  return state.name !== 'requested' && state.name !== 'executing'
}

/** The reason why a command changed nothing. */
export type Refusal =
  /** The approval does not exist, or the principal may not see it. */
  | { readonly refused: 'unknown-approval' }
  /** The principal may see the approval but may not decide it, or not yet. */
  | { readonly refused: 'not-allowed' }
  /** The approval was already decided, and the call may have run. `state` is its current state. */
  | { readonly refused: 'already-decided'; readonly state: ApprovalState }
  /** The principal has already approved. Other people still have to decide. */
  | { readonly refused: 'already-voted' }
  /** A vote counts for this person already: by a link that they created or opened, or of the person who created this link. */
  | { readonly refused: 'already-counted' }
  /** The principal has no vote to withdraw. */
  | { readonly refused: 'not-voted' }
  | { readonly refused: 'expired' }
  | { readonly refused: 'cancelled' }
  /** Other people must approve the call too, so one of them cannot edit it. */
  | { readonly refused: 'not-editable' }
  /** The tool requested no payload. */
  | { readonly refused: 'no-payload' }
  /** The preview is not the one that the person saw. */
  | { readonly refused: 'preview-changed'; readonly preview: ShownPreview }
  /** The preview cannot be made now. */
  | { readonly refused: 'preview-failed' }
  /** The preview says that the call would fail. */
  | { readonly refused: 'call-blocked'; readonly preview: ShownPreview }
  /** Only the server answers this question, when it has what the question asks for. */
  | { readonly refused: 'answered-by-server' }
  /** The call is not approved, or this worker does not run it. */
  | { readonly refused: 'not-approved' }
  /** The call differs from the one that people saw. */
  | { readonly refused: 'mismatch' }
  /** The approval cannot be decided in this way, or no longer. `message` says why. */
  | { readonly refused: 'invalid-means'; readonly message: string }
  /** The person chose something that the approval does not offer to them. `message` says why. */
  | { readonly refused: 'not-offered'; readonly message: string }
  | { readonly refused: 'too-many-pending' }
  /** The deadline has not passed. Only the sweep of the ledger gets this. */
  | { readonly refused: 'not-due' }

export type RefusalCode = Refusal['refused']

/** Whether a result is a refusal. */
export function isRefusal(result: object): result is Refusal {
  return 'refused' in result
}

/** What an MCP server claims about a tool. */
export interface ToolClaims {
  /** The prefix of the `MCPToolset` that the tool comes from. Undefined for other tools and for a toolset without a prefix. */
  readonly server?: string
  /** The name of the tool for people, as its MCP server gives it. The title of an approval if the policy gives none. */
  readonly title?: string
  /**
   * The annotations of the MCP tool. They are claims of the server: rely on them only if you trust it. Without
   * annotations, and for tools that are not from an MCP server: not read-only, destructive, not idempotent, open world.
   */
  readonly annotations: ToolAnnotations
}

/**
 * The annotations of an MCP tool.
 *
 * @inline
 */
interface ToolAnnotations {
  /** The tool changes nothing. */
  readonly readOnlyHint: boolean
  /** The tool may delete or overwrite something. False if the tool only adds, or is read-only. */
  readonly destructiveHint: boolean
  /** A second call with the same arguments changes nothing more. */
  readonly idempotentHint: boolean
  /** The tool reaches systems that its server does not control, such as the web. */
  readonly openWorldHint: boolean
}

/**
 * Reads the annotations of an MCP tool. A missing or invalid one has the default of the MCP specification, which is the
 * less safe property. A tool that claims to be both read-only and destructive is not read-only.
 */
export function readAnnotations(given: Readonly<Record<string, unknown>>): ToolAnnotations {
  const readOnlyHint = given['readOnlyHint'] === true && given['destructiveHint'] !== true
  return {
    readOnlyHint,
    destructiveHint: !readOnlyHint && given['destructiveHint'] !== false,
    idempotentHint: given['idempotentHint'] === true,
    openWorldHint: given['openWorldHint'] !== false,
  }
}

/** The claims about a tool whose server claims nothing. */
export const NO_CLAIMS: ToolClaims = { annotations: readAnnotations({}) }
