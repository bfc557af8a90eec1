import { useState } from 'react'

import type { ShownNotice } from '../../protocol/notices.ts'
import { useAdkLabels, useAdkSettings } from '../provider.tsx'
import { Time } from './approval-parts.tsx'
import { LiteralText } from './call-details.tsx'

/** Who was told of an approval: by which channel, when, and whether it arrived. Read when the person opens it. */
export function ApprovalNotices({ approvalId }: { readonly approvalId: string }) {
  const { notices: labels } = useAdkLabels()
  const { api } = useAdkSettings()
  const [notices, setNotices] = useState<readonly ShownNotice[]>()
  const [hasFailed, setFailed] = useState(false)
  const { listNotices } = api ?? {}
  if (!api || !listNotices) return null
  const load = async (): Promise<void> => {
    // If this fails, what was read before stays.
    const found = await listNotices.call(api, approvalId).catch(() => undefined)
    setFailed(found === undefined)
    if (found) setNotices(found)
  }
  return (
    <details
      className="adk-notices"
      onToggle={({ currentTarget }) => currentTarget.open && void load()}
    >
      <summary>{labels.title}</summary>
      <div role="status">
        {hasFailed && <p>{labels.failed}</p>}
        {notices?.length === 0 && <p>{labels.none}</p>}
      </div>
      {notices && notices.length > 0 && (
        <ul>
          {notices.map(({ type, channel, to, state, at, attempts }, index) => (
            // The order of the notices of an approval does not change.
            <li key={index} data-state={state}>
              <LiteralText in="span" text={to === undefined ? channel : `${channel} (${to})`} />
              {' · '}
              {labels.types[type] ?? type} · {labels.states[state]} <Time at={at} />
              {state !== 'sent' && attempts > 0 && <> · {labels.attempts(attempts)}</>}
            </li>
          ))}
        </ul>
      )}
    </details>
  )
}
