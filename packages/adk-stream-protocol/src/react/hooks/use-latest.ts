import { type RefObject, useLayoutEffect, useRef } from 'react'

/** The value of the newest rendering, for what is called later. */
export function useLatest<Value>(value: Value): RefObject<Value> {
  const ref = useRef(value)
  useLayoutEffect(() => {
    ref.current = value
  })
  return ref
}
