import type { UIMessage } from 'ai'
import { memo } from 'react'

import { useRenderers } from '../provider.tsx'
import type { Approval } from '../reading/approval.ts'
import { type Call, isCall, getToolName } from '../reading/call.ts'
import { ApprovalCard } from './approval-card.tsx'
import { useApprovalContext } from './approval-context.ts'
import { FileView } from './file-view.tsx'
import { CodeExecutionView } from './code-execution-view.tsx'
import { Reasoning, TextView } from './text-view.tsx'
import { ToolCard } from './tool-card.tsx'

type Part = UIMessage['parts'][number]

/** Props of `MessagePartView`. */
export interface MessagePartViewProps {
  readonly part: Part
  readonly role: UIMessage['role']
  /** Whether the message is still being streamed. */
  readonly streaming: boolean
  /** The approval of the call, if the part is a call that needs one. */
  readonly approval?: Approval | undefined
}

/** Shows one part of a message. Shows nothing for an unknown part type. */
export const MessagePartView = memo(function MessagePartView(props: MessagePartViewProps) {
  const { part, role, streaming, approval } = props
  const { renderData } = useRenderers()
  if (isCall(part)) return <CallView call={part} approval={approval} />
  if (part.type === 'text' && role === 'user') return <p className="adk-said">{part.text}</p>
  if (part.type === 'text')
    return <TextView text={part.text} streaming={streaming && part.state === 'streaming'} />
  if (part.type === 'reasoning')
    return <Reasoning text={part.text} streaming={streaming && part.state === 'streaming'} />
  if (part.type === 'file')
    return <FileView url={part.url} mediaType={part.mediaType} filename={part.filename} />
  if (part.type.startsWith('data-')) return renderData?.(part) ?? <CodeExecutionView part={part} />
  return null
}, isSame)

interface CallViewProps {
  readonly call: Call
  readonly approval: Approval | undefined
}

function CallView({ call, approval }: CallViewProps) {
  const { renderCall } = useRenderers()
  const { onDecide, refusals, votes, hints, unconfirmed, isConnected } = useApprovalContext()
  if (!approval) return renderCall?.(getToolName(call), call) ?? <ToolCard call={call} />
  const { approvalId } = approval
  const hint = hints.get(approvalId) ?? approval.hint
  const sending = isConnected ? 'sending' : 'waiting-for-connection'
  return (
    <ApprovalCard
      call={call}
      approval={{ ...approval, ...(hint !== undefined && { hint }) }}
      onDecide={(decision) => void onDecide(approvalId, decision)}
      refusal={refusals.get(approvalId)}
      votes={votes.get(approvalId)}
      delivery={unconfirmed.has(approvalId) ? sending : 'confirmed'}
    />
  )
}

/** Compares by content, because the AI SDK copies every part of a message when one part grows. */
function isSame(before: MessagePartViewProps, after: MessagePartViewProps): boolean {
  return (
    before.role === after.role &&
    before.streaming === after.streaming &&
    isShallowlySame(before.part, after.part) &&
    isShallowlySame(before.approval ?? {}, after.approval ?? {})
  )
}

function isShallowlySame(before: object, after: object): boolean {
  const known = Object.entries(before)
  const next = new Map(Object.entries(after))
  return known.length === next.size && known.every(([name, value]) => next.get(name) === value)
}
