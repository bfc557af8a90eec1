import { useCallback, useEffect, useState } from 'react'

import type { AdkApi } from '../../client/api/adk-api.ts'
import type { ShownGrant } from '../../protocol/grants.ts'
import { toLiteral } from '../../shared/literal-text.ts'
import { useAdkLabels } from '../provider.tsx'
import { LiteralText } from './call-details.tsx'
import { OutlinedButton } from './buttons.tsx'
import { Time } from './approval-parts.tsx'
import { describePinned } from './grant-offers.tsx'

/**
 * Props of `GrantList`.
 *
 * @inline
 */
interface GrantListProps {
  readonly api: Pick<AdkApi, 'listGrants' | 'revokeGrant' | 'watch'>
  /** Shows only the grants that cover calls of this chat. Default: all grants of the person. */
  readonly chatId?: string | undefined
}

/** Lists the grants that let calls run, or deny them, without asking, each with a button that revokes it. Shows nothing if there is none. */
export function GrantList({ api, chatId }: GrantListProps) {
  const labels = useAdkLabels()
  const { grants, hasFailed, revoke } = useGrants(api)
  const shown = grants.filter(
    (grant) => chatId === undefined || grant.scope === 'person' || grant.chatId === chatId,
  )
  if (shown.length === 0) return null
  return (
    <section className="adk-grants" aria-label={labels.grants.title}>
      <ul>
        {shown.map((grant) => {
          const title = toLiteral(grant.title ?? grant.toolName)
          const pinned = describePinned(grant.pinned, grant)
          return (
            <li key={grant.id} data-state={grant.state} data-effect={grant.effect}>
              <LiteralText in="strong" text={title} />
              {pinned !== '' && (
                <>
                  {' · '}
                  <LiteralText in="span" text={pinned} />
                </>
              )}
              <span> · {labels.grants.used(grant)}</span>
              {grant.expiresAt !== undefined && (
                <span>
                  {' · '}
                  {labels.grants.until} <Time at={grant.expiresAt} />
                </span>
              )}
              {grant.state === 'suspended' && <span> · {labels.grants.suspended}</span>}{' '}
              <OutlinedButton
                aria-label={labels.grants.revokeNamed(
                  pinned === '' ? title : `${title}, ${pinned}`,
                )}
                onClick={() => void revoke(grant.id)}
              >
                {labels.grants.revoke}
              </OutlinedButton>
            </li>
          )
        })}
      </ul>
      <p className="adk-failure" role="alert">
        {hasFailed && labels.grants.revokeFailed}
      </p>
    </section>
  )
}

const NO_GRANTS: readonly ShownGrant[] = []

/** Reads the grants, and again when an approval changes: every use of a grant changes one. */
function useGrants(api: GrantListProps['api']) {
  const [grants, setGrants] = useState(NO_GRANTS)
  const load = useCallback(async (): Promise<void> => {
    // If this fails, the list stays as it was, and the next change reads it again.
    const found = await api.listGrants().catch(() => undefined)
    if (found) setGrants(found)
  }, [api])
  useEffect(() => {
    // The state is set when the server has answered.
    // oxlint-disable-next-line react/set-state-in-effect
    void load()
    return api.watch(() => void load())
  }, [api, load])
  const [hasFailed, setFailed] = useState(false)
  const revoke = async (id: string): Promise<void> => {
    setFailed(false)
    await api.revokeGrant(id).catch(() => setFailed(true))
    await load()
  }
  return { grants, hasFailed, revoke }
}
