import type { ConnectionState } from '../../client/transports/connection-state.ts'
import { useCountdown } from '../hooks/use-countdown.ts'
import { useAdkTexts } from '../provider.tsx'

/** How the connection is, and when it is tried again. */
export function ConnectionBadge({ connection }: { readonly connection: ConnectionState }) {
  const texts = useAdkTexts()
  const { state, retryAt } = connection
  const seconds = useCountdown(retryAt)
  return (
    <span className="adk-connection" data-state={state}>
      <span className="adk-dot" aria-hidden="true" />
      <span role="status">{texts.connection[state]}</span>
      {/* Not read out: it changes every second. */}
      {seconds !== undefined && seconds > 0 && <span aria-hidden="true">{seconds}</span>}
    </span>
  )
}
