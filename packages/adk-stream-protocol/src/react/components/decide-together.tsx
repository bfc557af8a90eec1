import type { PendingApproval } from '../../protocol/server-views.ts'
import { hasMisleadingValue } from '../../shared/misleading-values.ts'
import { useAdkLabels, useDescribeCall } from '../provider.tsx'
import { toCallTitle } from '../reading/question.ts'
import { OutlinedButton } from './buttons.tsx'
import { PreviewView } from './call-preview.tsx'
import { LiteralText } from './call-details.tsx'

/** A call that waits for a decision of this person, in a chat or in the inbox. */
type UndecidedCall = Pick<
  PendingApproval,
  | 'id'
  | 'toolName'
  | 'title'
  | 'args'
  | 'kind'
  | 'payload'
  | 'severity'
  | 'misleading'
  | 'preview'
  | 'hasPreview'
>

interface DecideTogetherProps<Call extends UndecidedCall> {
  readonly calls: readonly Call[]
  readonly onDecide: (calls: readonly Call[], approved: boolean) => void
}

/** Offers one decision for the calls of a tool that wait, with each of them in words. */
export function DecideTogether<Call extends UndecidedCall>({
  calls,
  onDecide,
}: DecideTogetherProps<Call>) {
  const labels = useAdkLabels()
  const describe = useDescribeCall()
  return findAlike(calls, describe).map(([first, ...rest]) => {
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
              {preview && <PreviewView preview={preview} />}
            </li>
          ))}
        </ol>
        <div className="adk-actions">
          <OutlinedButton onClick={() => onDecide(alike, true)}>
            {together.approve(alike.length)}
          </OutlinedButton>
          <OutlinedButton onClick={() => onDecide(alike, false)}>
            {together.deny(alike.length)}
          </OutlinedButton>
        </div>
      </details>
    )
  })
}

/** A description may leave values out. */
function listArguments(args: UndecidedCall['args']): string {
  return Object.entries(args)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
    .join(', ')
}

/** The server accepts at most this many in one request. */
const MAX_TOGETHER = 50

/** Returns the calls of each tool with at least two that a person can decide without a form, and that the server lets them approve together (AP1700). */
function findAlike<Call extends UndecidedCall>(
  calls: readonly Call[],
  describe: ReturnType<typeof useDescribeCall>,
): (readonly [Call, ...Call[]])[] {
  const groups = new Map<string, [Call, ...Call[]]>()
  for (const call of calls) {
    const { toolName, args, kind, payload, preview, hasPreview } = call
    const description = describe(toolName, args, preview?.headline)
    const isPlain =
      kind === undefined &&
      payload === undefined &&
      call.severity !== 'high' &&
      call.misleading !== true &&
      !hasMisleadingValue(args, [description]) &&
      preview?.blocked === undefined &&
      (hasPreview !== true || preview !== undefined)
    if (!isPlain) continue
    const group = groups.get(toolName)
    if (group && group.length < MAX_TOGETHER) group.push(call)
    else if (!group) groups.set(toolName, [call])
  }
  return [...groups.values()].filter((group) => group.length > 1)
}
