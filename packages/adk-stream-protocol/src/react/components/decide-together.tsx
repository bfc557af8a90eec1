import type { PendingApproval } from '../../protocol/server-views.ts'
import type { WaitingDecisions } from '../../client/api/decision-outbox.ts'
import { useAdkLabels, useDescribeCall } from '../provider.tsx'
import { isUndecided } from '../reading/approval.ts'
import { toCallTitle } from '../reading/question.ts'
import { raiseShownSeverity } from '../reading/risk.ts'
import { OutlinedButton } from './buttons.tsx'
import { LiteralText } from './call-details.tsx'

interface DecideTogetherProps {
  readonly approvals: readonly PendingApproval[]
  readonly deciding: ReadonlySet<string> | undefined
  readonly waitingDecisions: WaitingDecisions | undefined
  readonly onDecide:
    | ((approvals: readonly PendingApproval[], approved: boolean) => void | Promise<void>)
    | undefined
}

/** Offers one decision for the calls of a tool that wait, with each of them in words. */
export function DecideTogether({ onDecide, ...props }: DecideTogetherProps) {
  const labels = useAdkLabels()
  const describe = useDescribeCall()
  if (!onDecide) return null
  return findAlike(props, describe).map(([first, ...rest]) => {
    const alike = [first, ...rest]
    const { together } = labels.inbox
    return (
      <details key={first.toolName} className="adk-together">
        <summary>
          {together.open(alike.length, toCallTitle(first.toolName, first.title, labels))}
        </summary>
        <ol>
          {alike.map(({ id, toolName, args, preview }) => (
            <li key={id}>
              <LiteralText
                in="span"
                className="adk-call-description"
                text={describe(toolName, args, preview?.headline)}
                values={args}
              />
              <LiteralText in="p" className="adk-status" text={listArguments(args)} />
            </li>
          ))}
        </ol>
        <div className="adk-actions">
          <OutlinedButton onClick={() => void onDecide(alike, true)}>
            {together.approve(alike.length)}
          </OutlinedButton>
          <OutlinedButton onClick={() => void onDecide(alike, false)}>
            {together.deny(alike.length)}
          </OutlinedButton>
        </div>
      </details>
    )
  })
}

/** A description may leave values out. */
function listArguments(args: PendingApproval['args']): string {
  return Object.entries(args)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
    .join(', ')
}

/** The server accepts at most this many in one request. */
const MAX_TOGETHER = 50

/** Returns the calls of each tool with at least two that this person can decide without a form. The server refuses high severity (AP1700). */
function findAlike(
  { approvals, deciding, waitingDecisions }: Omit<DecideTogetherProps, 'onDecide'>,
  describe: ReturnType<typeof useDescribeCall>,
): (readonly [PendingApproval, ...PendingApproval[]])[] {
  const groups = new Map<string, [PendingApproval, ...PendingApproval[]]>()
  for (const approval of approvals) {
    const { id, toolName, args, kind, payload, preview, hasPreview } = approval
    const shown = raiseShownSeverity(approval, args, describe(toolName, args, preview?.headline))
    const isPlain =
      kind === undefined &&
      payload === undefined &&
      shown.severity !== 'high' &&
      preview?.blocked === undefined &&
      (hasPreview !== true || preview !== undefined)
    if (!isPlain || !isUndecided(approval) || deciding?.has(id) || waitingDecisions?.has(id))
      continue
    const group = groups.get(toolName)
    if (group && group.length < MAX_TOGETHER) group.push(approval)
    else if (!group) groups.set(toolName, [approval])
  }
  return [...groups.values()].filter((group) => group.length > 1)
}
