const SIZE = 64

/** Draws a number on the page's icon. Returns a function that restores the icon. Does nothing for 0, or if the page has no icon. */
export function showIconCount(count: number): (() => void) | undefined {
  const link = document.querySelector<HTMLLinkElement>('link[rel~="icon"]')
  if (count === 0 || !link) return undefined
  const original = link.getAttribute('href') ?? ''
  let isOver = false
  const icon = new Image(SIZE, SIZE)
  icon.addEventListener('load', () => {
    const drawn = isOver ? undefined : draw(icon, count)
    if (drawn !== undefined) link.href = drawn
  })
  icon.src = original
  return () => {
    isOver = true
    link.setAttribute('href', original)
  }
}

function draw(icon: HTMLImageElement, count: number): string | undefined {
  const canvas = document.createElement('canvas')
  canvas.width = SIZE
  canvas.height = SIZE
  const context = canvas.getContext('2d')
  if (!context) return undefined
  context.drawImage(icon, 0, 0, SIZE, SIZE)
  const radius = SIZE * 0.3
  context.fillStyle = '#c5221f'
  context.beginPath()
  context.arc(SIZE - radius, radius, radius, 0, 2 * Math.PI)
  context.fill()
  context.fillStyle = '#ffffff'
  context.font = `bold ${radius * 1.4}px sans-serif`
  context.textAlign = 'center'
  context.textBaseline = 'middle'
  context.fillText(count > 9 ? '9+' : String(count), SIZE - radius, radius * 1.05, radius * 1.7)
  try {
    return canvas.toDataURL('image/png')
  } catch {
    // The icon comes from another origin.
    return undefined
  }
}
