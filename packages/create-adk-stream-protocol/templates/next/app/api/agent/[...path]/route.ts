import { toRouteHandlers } from 'adk-stream-protocol/use/next'

import { getBridge } from '../../../../bridge'

export const { GET, POST, PATCH, DELETE, OPTIONS } = toRouteHandlers(getBridge)
