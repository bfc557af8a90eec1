import { ConnectionBadge, useConnection } from 'adk-stream-protocol/react'

import { useMode } from '../settings/mode.ts'
import { transports } from '../wire/wire.ts'

/** Shows the state of the connection. Shows nothing in a mode without a connection. */
export function Connection() {
  const [mode] = useMode()
  const connection = useConnection(transports[mode])
  return connection.state === 'idle' ? null : <ConnectionBadge connection={connection} />
}
