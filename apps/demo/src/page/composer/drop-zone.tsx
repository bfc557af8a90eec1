import { ImagePlus } from 'lucide-react'
import { useEffect, useEffectEvent, useState } from 'react'

import { useLabels } from '../i18n/language.tsx'

/** Accepts files that are dropped anywhere on the page, and shows an overlay while they are dragged over it. */
export function DropZone({ onDrop }: { readonly onDrop: (files: File[]) => void }) {
  const { composer } = useLabels().shell
  const [held, setHeld] = useState(false)
  const take = useEffectEvent(onDrop)
  useEffect(() => {
    const over = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes('Files')) return
      // Without this, the browser would navigate to the file.
      event.preventDefault()
      setHeld(true)
    }
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) setHeld(false)
    }
    const drop = (event: DragEvent) => {
      setHeld(false)
      const files = [...(event.dataTransfer?.files ?? [])]
      if (files.length === 0) return
      event.preventDefault()
      take(files)
    }
    document.addEventListener('dragover', over)
    document.addEventListener('dragleave', leave)
    document.addEventListener('drop', drop)
    return () => {
      document.removeEventListener('dragover', over)
      document.removeEventListener('dragleave', leave)
      document.removeEventListener('drop', drop)
    }
  }, [])
  if (!held) return null
  return (
    <div className="drop-zone">
      <p>
        <ImagePlus aria-hidden="true" />
        {composer.drop}
      </p>
    </div>
  )
}
