import { useCallback, useEffect, useRef, useState } from 'react'

const NEAR_PX = 40

/**
 * Scrolls to the end of an element when content is added, until the person scrolls up. Continues when they return to the end. Does
 * not scroll if `still` is true.
 */
export function useStickToEnd<Scroller extends HTMLElement, Content extends HTMLElement>(
  still: boolean,
) {
  const scrollerRef = useRef<Scroller>(null)
  const contentRef = useRef<Content>(null)
  const followingRef = useRef(true)
  const [following, setFollowing] = useState(true)

  useEffect(() => {
    const scroller = scrollerRef.current
    const content = contentRef.current
    if (still || !scroller || !content) return
    let lastTop = scroller.scrollTop
    let lastHeight = scroller.clientHeight
    const follow = (value: boolean) => {
      followingRef.current = value
      setFollowing(value)
    }
    const watch = () => {
      const distance = scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop
      // Only scrolling up is an action of the person. Growing content also increases the distance, and a scroller that grows
      // or shrinks moves its content.
      const isResized = scroller.clientHeight !== lastHeight
      if (distance < NEAR_PX) follow(true)
      else if (scroller.scrollTop < lastTop && !isResized) follow(false)
      lastTop = scroller.scrollTop
      lastHeight = scroller.clientHeight
    }
    const grown = new ResizeObserver(() => {
      if (followingRef.current) scroller.scrollTop = scroller.scrollHeight
    })
    scroller.addEventListener('scroll', watch, { passive: true })
    grown.observe(content)
    grown.observe(scroller)
    return () => {
      scroller.removeEventListener('scroll', watch)
      grown.disconnect()
    }
  }, [still])

  const goToEnd = useCallback(() => {
    followingRef.current = true
    setFollowing(true)
    const scroller = scrollerRef.current
    if (scroller) scroller.scrollTop = scroller.scrollHeight
  }, [])
  return { scrollerRef, contentRef, following, goToEnd }
}
