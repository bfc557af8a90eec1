import type { UIMessage, SourceUrlUIPart } from 'ai'
import { memo, createContext, use } from 'react'

import { useAdkSettings, useAdkLabels } from '../provider.tsx'
import {
  type Approval,
  asksForAnswer,
  type ApprovalDetails,
  type Decision,
  type Votes,
} from '../reading/approval.ts'
import { type Call, isCall, getToolName } from '../reading/call.ts'
import { ApprovalCard } from './approval-card.tsx'
import { CodeBlock, FileView } from './message-content.tsx'
import { QuestionCard } from './question-card.tsx'
import { SignInCard } from './sign-in-card.tsx'
import { StepList } from './step-list.tsx'
import { ToolCard } from './tool-card.tsx'
import { readSteps } from '../reading/steps.ts'
import { isRecord } from '../../protocol/guards.ts'
import { NONE_WAITING, type WaitingDecisions } from '../../client/api/decision-outbox.ts'
import type { PendingSum } from '../reading/preview.ts'
import type { ServerError } from '../reading/problem.ts'

type Part = UIMessage['parts'][number]

/** Props of `MessagePartView`. */
export interface MessagePartViewProps {
  readonly part: Part
  readonly role: UIMessage['role']
  /** Whether the message is still being streamed. */
  readonly streaming: boolean
  /** The approval of the call, if the part is a call that needs one. */
  readonly approval?: Approval | undefined
  /** What the call waits for inside it, as a sentence. */
  readonly waitsFor?: string | undefined
}

/** Shows one part of a message. Shows nothing for an unknown part type. */
export const MessagePartView = memo(function MessagePartView(props: MessagePartViewProps) {
  const { part, role, streaming, approval, waitsFor } = props
  const { renderData } = useAdkSettings()
  if (isCall(part)) return <CallView {...{ call: part, approval, waitsFor }} />
  if (part.type === 'text' && role === 'user')
    return (
      <p className="adk-said" dir="auto">
        {part.text}
      </p>
    )
  if (part.type === 'text')
    return <TextView text={part.text} streaming={streaming && part.state === 'streaming'} />
  if (part.type === 'reasoning')
    return <Reasoning text={part.text} streaming={streaming && part.state === 'streaming'} />
  if (part.type === 'file')
    return <FileView url={part.url} mediaType={part.mediaType} filename={part.filename} />
  if (part.type.startsWith('data-')) return renderData?.(part) ?? <DataView part={part} />
  return null
}, isSame)

interface CallViewProps {
  readonly call: Call
  readonly approval: Approval | undefined
  readonly waitsFor: string | undefined
}

function CallView({ call, approval, waitsFor }: CallViewProps) {
  const { renderCall } = useAdkSettings()
  const context = useApprovalContext()
  const { onDecide, onRefresh, refusals, votes, hints, details, sums } = context
  const { unconfirmed, isConnected, waitingDecisions, onCancelDecision } = context
  if (!approval)
    return renderCall?.(getToolName(call), call) ?? <ToolCard {...{ call, waitsFor }} />
  const { approvalId } = approval
  const hint = hints.get(approvalId) ?? approval.hint
  const current = details.get(approvalId)
  const preview = current ? current.preview : approval.preview
  const sending = isConnected ? 'sending' : 'waiting-for-connection'
  const AskCard = asksForAnswer(approval) ? QuestionCard : ApprovalCard
  const Card = approval.kind === 'sign-in' ? SignInCard : AskCard
  return (
    <Card
      call={call}
      approval={{ ...approval, ...(hint !== undefined && { hint }), preview }}
      argsSchema={current?.argsSchema}
      sum={sums.get(approvalId)}
      onRefresh={onRefresh && (() => onRefresh(approvalId))}
      onDecide={(decision) => void onDecide(approvalId, decision)}
      refusal={refusals.get(approvalId)}
      votes={votes.get(approvalId)}
      onCancelDecision={onCancelDecision && (() => onCancelDecision(approvalId))}
      waitsFor={waitsFor}
      waitingDecision={waitingDecisions.get(approvalId)}
      delivery={unconfirmed.has(approvalId) ? sending : 'confirmed'}
    />
  )
}

/** Compares by content, because the AI SDK copies every part of a message when one part grows. */
function isSame(before: MessagePartViewProps, after: MessagePartViewProps): boolean {
  return (
    before.role === after.role &&
    before.streaming === after.streaming &&
    before.waitsFor === after.waitsFor &&
    isShallowlySame(before.part, after.part) &&
    isShallowlySame(before.approval ?? {}, after.approval ?? {})
  )
}

function isShallowlySame(before: object, after: object): boolean {
  const known = Object.entries(before)
  const next = new Map(Object.entries(after))
  return known.length === next.size && known.every(([name, value]) => next.get(name) === value)
}

interface TextViewProps {
  readonly text: string
  /** Whether more text follows. */
  readonly streaming: boolean
}

/** Shows text of the assistant with the application's `renderText`, or as plain text. */
function TextView({ text, streaming }: TextViewProps) {
  const { renderText } = useAdkSettings()
  if (renderText) return <>{renderText(text, { streaming })}</>
  return (
    <p className="adk-text" dir="auto">
      {text}
    </p>
  )
}

/** Shows the model's reasoning in a collapsed section. */
function Reasoning({ text, streaming }: TextViewProps) {
  const { message } = useAdkLabels()
  if (text === '') return null
  return (
    <details className="adk-reasoning">
      <summary>{streaming ? message.thinking : message.reasoning}</summary>
      <TextView text={text} streaming={streaming} />
    </details>
  )
}

/** Lists the web sources of a grounded reply. */
export function Sources({ parts }: Pick<UIMessage, 'parts'>) {
  const { message } = useAdkLabels()
  const sources = parts.filter((part) => part.type === 'source-url').filter(isWebUrl)
  if (sources.length === 0) return null
  return (
    <div className="adk-sources">
      <h3>{message.sources}</h3>
      <ol>
        {sources.map(({ sourceId, url, title }) => (
          <li key={sourceId}>
            <a href={url} target="_blank" rel="noopener noreferrer">
              {title ?? url}
            </a>
          </li>
        ))}
      </ol>
    </div>
  )
}

/** The URL comes from the model. A `javascript:` link must never reach the page. */
function isWebUrl({ url }: SourceUrlUIPart): boolean {
  return /^https?:\/\//i.test(url)
}

interface DataViewProps {
  readonly part: UIMessage['parts'][number]
}

/** Shows the progress of steps, code that the model ran, or what a reply decided. Shows nothing for other data parts. */
function DataView({ part }: DataViewProps) {
  if (part.type === 'data-decision') return <DecisionView part={part} />
  if (part.type !== 'data-steps') return <CodeExecutionView part={part} />
  const progress = 'data' in part ? readSteps(part.data) : undefined
  return progress ? <StepList progress={progress} /> : null
}

/** Says what the message of the person decided. The card of the call shows the outcome. */
function DecisionView({ part }: DataViewProps) {
  const { approval } = useAdkLabels()
  const data = 'data' in part && isRecord(part.data) ? part.data : {}
  if (typeof data['approved'] !== 'boolean') return null
  return <p className="adk-decision">{approval.decidedByReply(data['approved'])}</p>
}

/** Shows code that the model ran, or its result. Shows nothing for other data parts. */
function CodeExecutionView({ part }: DataViewProps) {
  const { message } = useAdkLabels()
  const data = 'data' in part && isRecord(part.data) ? part.data : {}
  const isCode = part.type === 'data-executable-code'
  if (!isCode && part.type !== 'data-code-execution-result') return null
  const text = isCode ? data['code'] : data['output']
  if (typeof text !== 'string') return null
  const language = isCode && typeof data['language'] === 'string' ? data['language'] : ''
  return (
    <CodeBlock
      code={text}
      language={language.toLowerCase()}
      caption={isCode ? message.code : message.codeResult}
    />
  )
}

/** How the cards of a list send decisions, and what they show that the messages do not contain. */
export interface ApprovalContextValue {
  /** Sends a decision. Report an error through `refusals`. */
  readonly onDecide: (approvalId: string, decision: Decision) => void | Promise<void>
  /** Why the server refused decisions, by approval id. */
  readonly refusals: ReadonlyMap<string, ServerError>
  /** How many people have approved, by approval id. */
  readonly votes: ReadonlyMap<string, Votes>
  /** Hints that are newer than those in the messages, by approval id. */
  readonly hints: ReadonlyMap<string, string>
  /** The current previews and schemas of pending approvals, by approval id. */
  readonly details: ReadonlyMap<string, ApprovalDetails>
  /** Reads a pending approval again. Without it, a card has no button to load its preview again. */
  readonly onRefresh?: ((approvalId: string) => void) | undefined
  /** The approval ids of decisions that the server has not confirmed. */
  readonly unconfirmed: ReadonlySet<string>
  /** Whether a decision can be sent now. Default true. */
  readonly isConnected: boolean
  /** Votes and answers that wait for the connection, by approval id. */
  readonly waitingDecisions: WaitingDecisions
  /** Takes back a decision that waits for the connection. Returns false if it may have arrived. */
  readonly onCancelDecision?: ((approvalId: string) => boolean) | undefined
}

/** The context of the cards of a list, with what the list computes. */
interface CardContext extends ApprovalContextValue {
  /** The sums of what is pending, by approval id. */
  readonly sums: ReadonlyMap<string, PendingSum>
}

/** A context rather than props: a refusal renders one card and not every message. */
export const ApprovalContext = createContext<CardContext>({
  onDecide: () => undefined,
  refusals: new Map(),
  votes: new Map(),
  hints: new Map(),
  details: new Map(),
  sums: new Map(),
  unconfirmed: new Set(),
  waitingDecisions: NONE_WAITING,
  isConnected: true,
})

function useApprovalContext(): CardContext {
  return use(ApprovalContext)
}
