import type { ConnectionState } from '../../client/transports/connection-state.ts'
import { useCountdown } from './countdown.tsx'
import { useAdkLabels } from '../provider.tsx'

/** Shows the state of the connection, and the seconds until it reconnects. */
export function ConnectionBadge({ connection }: { readonly connection: ConnectionState }) {
  const labels = useAdkLabels()
  const { state, retryAt } = connection
  const seconds = useCountdown(retryAt)
  return (
    <span className="adk-connection" data-state={state}>
      <span className="adk-dot" aria-hidden="true" />
      <span role="status">{labels.connection[state]}</span>
      {/* Hidden from screen readers, which would announce every second. */}
      {seconds !== undefined && seconds > 0 && <span aria-hidden="true">{seconds}</span>}
    </span>
  )
}
