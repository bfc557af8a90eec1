import { type RefObject, useLayoutEffect, useRef } from 'react'

/** Returns a ref with the value of the latest render, for callbacks that run later. */
export function useLatest<Value>(value: Value): RefObject<Value> {
  const ref = useRef(value)
  useLayoutEffect(() => {
    ref.current = value
  })
  return ref
}
