import type { ListSessionsRequest, ListSessionsResponse } from '@google/adk'
import { StoreError } from './store-error.ts'

export interface ListPage {
  readonly offset: number
  /** `undefined` means no limit. */
  readonly limit: number | undefined
}

/** Reads the range of a list request. `page` counts from 1 and takes precedence over `offset`. */
export function readPage({ limit, offset = 0, page }: ListSessionsRequest): ListPage {
  checkWhole('offset', offset, 0)
  if (limit === undefined) return { offset, limit }
  checkWhole('limit', limit, 0)
  if (page === undefined) return { offset, limit }
  checkWhole('page', page, 1)
  return { offset: (page - 1) * limit, limit }
}

/** Describes the position of a page in the whole list, in the shape of ADK. */
export function describePage(
  request: ListSessionsRequest,
  totalItems: number,
): Omit<ListSessionsResponse, 'sessions'> {
  const { offset, limit } = readPage(request)
  if (limit === undefined)
    return { page: 1, limit: totalItems, totalItems, totalPages: totalItems === 0 ? 0 : 1 }
  if (limit === 0) return { page: request.page ?? 1, limit, totalItems, totalPages: 0 }
  const page = request.page ?? Math.floor(offset / limit) + 1
  return { page, limit, totalItems, totalPages: Math.ceil(totalItems / limit) }
}

function checkWhole(what: string, value: number, least: number): void {
  if (Number.isSafeInteger(value) && value >= least) return
  throw new StoreError('invalid', `\`${what}\` must be an integer of at least ${least}.`)
}
